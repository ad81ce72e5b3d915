"""Tables, comparisons with theory and figures."""

from __future__ import annotations

import dataclasses
import json
import math
import sys

import numpy as np
import pytest

import brwsim
from brwsim.errors import FileError, InvalidInput
from brwsim.report.compare import compare
from brwsim.report.drawing import apart
from brwsim.report.installation import installation
from brwsim.report.plot import plot
from brwsim.report.tables import (
    bound_table,
    few,
    format_table,
    mean_and_error,
    number,
    plain,
    result_table,
    with_headings,
)

DIRICHLET = "dirichlet:vocab=50,alpha=0.02"


@pytest.fixture(scope="module")
def result():
    return brwsim.sweep(DIRICHLET, "1..300", trees=60, seed=3)


@pytest.fixture(scope="module")
def exact():
    return brwsim.sweep("table:p=[0.6,0.25,0.1,0.05]", "1,4,64")


def scaled(result, factor):
    """The same result with every tree's sum multiplied: what a wrong simulation would give."""
    blocks = {
        key: dataclasses.replace(block, mean_x=block.mean_x * factor) for key, block in result.blocks.items()
    }
    return dataclasses.replace(result, blocks=blocks)


# ---------------------------------------------------------------- tables


def test_columns_are_aligned_and_headers_flush_with_the_bottom():
    table = format_table(["name", "two\nlines"], [["a", "1"], ["longer", "22"]], "<")
    assert table.split("\n") == ["          two", "name    lines", "a           1", "longer     22"]


@pytest.mark.parametrize("count", [7, 13])
@pytest.mark.parametrize(("low", "high"), [(1, 4096), (1, 10), (1000, 1100), (3, 10**6), (1, 13), (5, 5)])
def test_few_values_hold_the_ends(low, high, count):
    P = np.arange(low, high + 1)
    shown = few(P, count)
    assert (P[shown[0]], P[shown[-1]]) == (low, high)
    assert np.all(np.diff(shown) > 0)
    assert shown.size <= count + 2


@pytest.mark.parametrize(
    ("mean", "stderr", "cells"),
    [
        (8.139216, 0.0793, ("8.139", "0.079")),
        (8.139216, 1e-12, ("8.139216000", "0.000000000")),
        (12345.6, 250.0, ("12346", "250")),
        (2.0, math.inf, ("2.00000", "unknown")),
    ],
)
def test_a_mean_shows_what_its_error_allows(mean, stderr, cells):
    assert mean_and_error(mean, stderr) == cells


def test_numbers_of_any_size():
    assert [number(x) for x in (0.0, 6.58e-10, -0.5, 99999.7, math.inf)] == [
        "0",
        "6.6e-10",
        "-0.50000",
        "100000",
        "-",
    ]


def test_result_table_shows_bounds_by_kind_and_hides_trivial_values(result):
    lines = result_table(result).split("\n")
    assert "dirichlet:vocab=50,alpha=0.02" in lines[0]
    header = next(line for line in lines if "upper" in line).split()
    assert header == ["P", "E[X]", "stderr", *4 * ["upper"], *2 * ["lower"], "estimate"]
    assert "corollary1" not in result_table(result)
    assert "annealed_lower" in result_table(result)  # unbroken: there is room
    first = next(line for line in lines if line.split()[:1] == ["1"]).split()
    assert first[:3] == ["1", "1.00000", "exact"]
    assert set(first[3:9]) == {"-"}
    assert any(line.startswith("moments    mu 0.96") for line in lines)
    assert max(map(len, lines)) <= 110
    assert "a mean may lie beyond a bound by its standard error" in result_table(result)


def test_headers_are_broken_only_where_there_is_no_room():
    bounds = [brwsim.bounds.BOUNDS[name] for name in ("annealed_lower", "leaf_count")]
    rows = [["1", *["x" * 10] * 2]]
    assert "annealed_lower  leaf_count" in with_headings(["P"], bounds, rows)
    broken = with_headings(["P"], bounds, [["1" * 90, "x", "x"]])
    assert broken.split("\n")[0].split() == ["annealed_", "leaf_"]


def test_a_single_tree_has_no_error_estimate():
    text = str(brwsim.sweep(DIRICHLET, "4,16", trees=1, seed=3))
    assert "unknown" in text
    assert "1 grown, seed 3; one tree has no error estimate" in text
    assert "below crude" not in text


def test_trees_and_variance_read_as_plain_numbers():
    result = brwsim.sweep(DIRICHLET, "1..64", rel_err=0.005)
    assert f"{result.trees} grown, of which 64 reach P=64, seed 0" in str(result)
    assert plain(result.variance_ratio[-1]) in str(result)


def test_a_fixed_law_is_called_exact(exact):
    text = str(exact)
    assert "the answer is exact" in text
    assert "estimator" not in text


def test_long_processes_are_cut_in_titles():
    p = [1 / 64] * 64
    title = str(brwsim.sweep({"name": "table", "p": p}, "1,2")).split("\n")[0]
    assert title.endswith("...")
    assert len(title) < 130


def test_bounds_from_moments_alone():
    table = bound_table(np.array([1, 64, 4096]), {"mu": 0.683, "mu2": 1.2, "vocab": None})
    data = json.loads(json.dumps(table.to_dict(), allow_nan=False))
    assert data["bounds"]["theorem1"][0] is None
    assert data["bounds"]["renewal"][2] == pytest.approx(brwsim.bounds.renewal(4096, mu=0.683, mu2=1.2))
    assert data["kinds"]["sharp"] == "estimate"
    assert "annealed" not in data["bounds"]
    assert "ln(1 + mu P - mu2/mu)/mu + mu2/mu^2" in str(table)
    with pytest.raises(InvalidInput, match="mu must be"):
        bound_table(np.array([1]), {"mu": -1.0, "mu2": 1.0})


# ---------------------------------------------------------------- comparison


@pytest.mark.parametrize("name", ["result", "exact"])
def test_no_bound_is_violated(name, request):
    comparison = compare(request.getfixturevalue(name))
    assert comparison.violations == []
    assert "no proved bound is violated" in str(comparison)


def test_gap_and_ratio(result):
    comparison = compare(result, "1..300:299,64")
    assert comparison.P.tolist() == [1, 64, 300]
    theorem1 = next(item for item in comparison.against if item.bound.name == "theorem1")
    assert math.isnan(theorem1.gap[0])
    assert theorem1.gap[1] == pytest.approx(theorem1.value[1] - result.mean[63])
    assert theorem1.ratio[1] == pytest.approx(theorem1.value[1] / result.mean[63])
    assert theorem1.beyond[1] < 0


def test_a_mean_too_high_breaks_upper_bounds_and_one_too_low_lower_bounds(result):
    high, low = compare(scaled(result, 3.0)), compare(scaled(result, 0.3))
    kinds = {bound.name: bound.kind for bound in result.bound_objects}
    assert {kinds[found.bound] for found in high.violations} == {"upper"}
    assert {kinds[found.bound] for found in low.violations} == {"lower"}
    assert all(found.errors > 4 for found in high.violations)
    assert "violations at 300 values of P" in high.summary()
    assert "stderr" in str(high)
    assert "E[X] = " in str(high.violations[0])


def test_an_exact_mean_may_not_exceed_a_bound_at_all(exact):
    assert compare(scaled(exact, 1 + 1e-12)).violations == []
    comparison = compare(scaled(exact, 1.01))
    assert {found.bound for found in comparison.violations} == {"annealed", "leaf_count"}
    assert all(math.isinf(found.errors) for found in comparison.violations)
    assert comparison.to_dict()["violations"][0]["errors"] is None


def test_a_single_tree_violates_nothing():
    """Nothing is known about its error."""
    comparison = compare(scaled(brwsim.sweep(DIRICHLET, "1..16", trees=1), 3.0), "16")
    assert comparison.violations == []


def test_comparison_is_json_ready(result):
    data = json.loads(json.dumps(compare(result, [2, 300]).to_dict(), allow_nan=False))
    assert data["P"] == [2, 300]
    assert data["bounds"]["renewal"]["kind"] == "upper"
    assert set(data["bounds"]["renewal"]) == {"kind", "value", "gap", "ratio", "beyond"}
    assert data["violations"] == []


@pytest.mark.parametrize("P", ["301", "1..301", "0", []])
def test_only_the_results_own_P_can_be_compared(result, P):
    with pytest.raises(InvalidInput):
        compare(result, P)


# ---------------------------------------------------------------- figures


@pytest.mark.parametrize(("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("PDF", b"%PDF")])
def test_figures_are_written_and_reproducible(result, tmp_path, suffix, magic):
    pytest.importorskip("matplotlib")
    paths = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for path in paths:
        plot(result, path)
    first, second = (path.read_bytes() for path in paths)
    assert first.startswith(magic)
    assert first == second


def test_a_figure_names_every_curve_and_thins_long_ones(tmp_path):
    pytest.importorskip("matplotlib")
    result = brwsim.sweep(DIRICHLET, "1..4096", trees=4)
    plot(result, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    for bound in result.bound_objects:
        assert (f">{bound.name} ({bound.kind})<" in text) is not bound.leading_term
    axes = plot(result).axes[0]
    assert axes.get_title(loc="left") == DIRICHLET
    lengths = [line.get_xdata().size for line in axes.lines if isinstance(line.get_xdata(), np.ndarray)]
    assert max(lengths) <= 240


def test_a_figure_of_chosen_bounds(result):
    pytest.importorskip("matplotlib")
    texts = [text.get_text() for text in plot(result, bounds=["renewal"]).axes[0].texts]
    assert sorted(texts) == ["E[X] \N{PLUS-MINUS SIGN} 2 s.e.", "renewal (upper)"]
    with pytest.raises(InvalidInput, match="no bound 'nope'"):
        plot(result, bounds=["nope"])


@pytest.mark.parametrize("P", ["1", "7", "1,2", "16,64,256"])
@pytest.mark.parametrize("dist", [DIRICHLET, "uniform:vocab=4"])
def test_figures_of_small_grids(tmp_path, P, dist):
    pytest.importorskip("matplotlib")
    plot(brwsim.sweep(dist, P, trees=1), tmp_path / "a.svg")


def test_figures_leave_the_users_matplotlib_alone(result, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    before = dict(matplotlib.rcParams)
    plot(result, tmp_path / "a.png")
    assert dict(matplotlib.rcParams) == before


def test_figures_that_cannot_be_written(result, tmp_path, monkeypatch):
    with pytest.raises(InvalidInput, match=r"\.png, \.svg, \.pdf"):
        plot(result, tmp_path / "a.gif")
    with pytest.raises(FileError, match="does not exist"):
        plot(result, tmp_path / "none" / "a.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(FileError, match="is a directory"):
        plot(result, tmp_path / "folder.png")
    saved = result.save(tmp_path / "run.png")
    with pytest.raises(InvalidInput, match="the result itself"):
        plot(saved, tmp_path / "run.png")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InvalidInput, match="install matplotlib \\(the plot extra\\)"):
        plot(result, tmp_path / "b.png")
    assert {path.name for path in tmp_path.iterdir()} == {"folder.png", "run.png"}


def test_labels_are_moved_apart_and_no_farther():
    ends = np.array([0.1, 0.5, 0.5, 0.5, 0.9])
    np.testing.assert_allclose(apart(ends, 0.1), [0.1, 0.4, 0.5, 0.6, 0.9])


# ---------------------------------------------------------------- installation


def test_installation():
    found = installation()
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["versions"]["numba"] in str(found)
    assert data["threads"] >= 1
    assert set(data["extras"]) == {"plot", "xarray", "dask"}
    assert "CUDA" in str(found)


def test_an_installation_without_a_cache_says_so(monkeypatch):
    monkeypatch.setattr("brwsim.kernels.cache.cache_dir", lambda: None)
    assert "every run compiles" in str(installation())
