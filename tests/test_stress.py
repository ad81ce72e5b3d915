"""The stress test: what the report holds, where violations are found and where not, files, the command."""

from __future__ import annotations

import builtins
import dataclasses
import json
import math

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import brwsim
from brwsim.cli.main import main
from brwsim.errors import FileError, InvalidInput
from brwsim.process import process_from_spec
from brwsim.process.markov import Markov
from brwsim.stresstest.axes import Axis, parse_sweep, process_at
from brwsim.stresstest.case import Simulated, mixed, strata
from brwsim.stresstest.report import _first_break
from brwsim.stresstest.run import seed_of

MARKOV = "markov:low=0.2,high=1.166,persistence=0.9,vocab=2000"
# State 0: (0.99, 0.01), the likelier child stays; state 1: 16 equal children, two of them in state 0
BREAKS_THEOREM1 = {
    "name": "markov",
    "laws": ["table:p=[0.99,0.01]", "uniform:vocab=16"],
    "transition": [[[1, 0], [1, 0]], [[0, 1], [1, 0]], [[0, 1], [0, 1]]],
}


@pytest.fixture(scope="module")
def report():
    return brwsim.stress(MARKOV, "1,4,16,64,256", trees=300, seed=3)


@pytest.fixture(scope="module")
def curve():
    return brwsim.stress("markov:vocab=50", "16,128", sweep="persistence=0,0.6,0.95", trees=200)


@pytest.fixture(scope="module")
def heat():
    return brwsim.stress(
        "markov:vocab=2000", 64, sweep={"persistence": [0, 0.9, 0.99], "spread": "0.2..1.3@3"}, trees=150
    )


# ---------------------------------------------------------------- content


def test_the_exact_tree_that_breaks_theorem_1():
    """The table of docs/theory.md, section persistence: nothing is random but the root."""
    report = brwsim.stress(BREAKS_THEOREM1, "64,256,1024,16384", trees=5)
    np.testing.assert_allclose(report.mean, [44.267, 86.315, 94.547, 99.822], atol=5e-4)
    assert not report.stderr.any()
    broken = {(found.formula, found.P) for found in report.violations}
    assert {P for name, P in broken if name == "theorem1"} == {64, 256, 1024}
    assert {P for name, P in broken if name == "renewal"} == {64, 256, 1024, 16384}
    assert {P for name, P in broken if name == "leaf_count"} == {64, 256, 1024, 16384}
    assert all(found.kind == "iid-upper" and math.isinf(found.errors) for found in report.violations)
    own = report.cases[0].stationary.theory["annealed_markov"]
    np.testing.assert_allclose(own, report.mean, rtol=1e-6)


def test_ratio_and_its_error(report):
    case = report.cases[0]
    assert report.starts == ("state 0", "state 1")
    own, other = case.stationary.simulated, case.surrogate
    np.testing.assert_allclose(report.ratio, own.mean / other.mean)
    relative = np.hypot(own.stderr / own.mean, other.stderr / other.mean)
    np.testing.assert_allclose(report.ratio_stderr, report.ratio * relative)
    assert report.ratio[0] == 1.0
    assert report.ratio[-1] > 1.2 + 4.0 * report.ratio_stderr[-1]


def test_errors_of_the_ratio_are_honest():
    """Over 24 seeds the ratio scatters as its standard error says."""
    laws = ["table:p=[0.8,0.15,0.05]", "uniform:vocab=5"]
    spec = {"name": "markov", "laws": laws, "transition": [[0.9, 0.1], [0.1, 0.9]]}
    found = [brwsim.stress(spec, 32, trees=64, seed=seed) for seed in range(24)]
    ratios = np.array([report.ratio[0] for report in found])
    error = math.sqrt(np.mean([report.ratio_stderr[0] ** 2 for report in found]))
    assert 0.6 < ratios.std(ddof=1) / error < 1.5


def test_the_stationary_process_is_the_mixture_of_its_starts(report):
    direct = brwsim.sweep(MARKOV, "1,4,16,64,256", trees=600, seed=99)
    error = np.hypot(direct.stderr, report.stderr)
    assert np.all(np.abs(direct.mean - report.mean) <= 4.0 * error)
    assert strata(process_from_spec(brwsim.parse.parse_dist("ar1"))) is None
    assert strata(process_from_spec(brwsim.parse.parse_dist("regimes:longest=3"))) is None
    parts = {
        "a": Simulated(np.array([1.0]), np.array([0.3]), 5),
        "b": Simulated(np.array([3.0]), np.array([0.4]), 7),
    }
    whole = mixed(parts, {"a": 0.5, "b": 0.5})
    assert (whole.mean[0], whole.stderr[0], whole.trees) == (2.0, 0.25, 12)


def test_violations_are_found_where_they_must_be_and_not_where_they_must_not(report):
    broken = {found.formula for found in report.violations}
    assert broken == {"renewal", "annealed"}
    assert all(found.start == "stationary" and found.errors > 4.0 for found in report.violations)
    assert not report.is_broken("theorem1").any()
    calm = brwsim.stress("markov:persistence=0,vocab=2000", "4,64,256", trees=300, seed=3)
    assert not calm.violations
    assert np.all(np.abs(calm.ratio - 1.0) < 4.0 * calm.ratio_stderr)
    falling = brwsim.stress("ar1:rho=-0.7,levels=4,vocab=500", 64, trees=300)
    assert not falling.violations
    assert falling.ratio[0] < 1.0 - 4.0 * falling.ratio_stderr[0]


def test_a_violated_proof_is_reported(report):
    """Should a simulation ever leave the process's own bounds, it says so loudly."""
    start = report.cases[0].stationary
    wrong = dataclasses.replace(start, theory={**start.theory, "annealed_markov": start.simulated.mean - 1.0})
    case = dataclasses.replace(report.cases[0], stationary=wrong)
    bad = dataclasses.replace(report, cases=(case,))
    assert {found.kind for found in bad.violations} == {"iid-upper", "upper"}
    assert "PROVED BOUND VIOLATED: annealed_markov from stationary" in str(bad)
    assert "PROVED" not in str(report)


def test_starts_without_a_chain():
    report = brwsim.stress("rotation:levels=4,vocab=500", "16,256", trees=100)
    assert report.starts == ("point 0", "point 0.25", "point 0.5", "point 0.75")
    assert report.cases[0].spread[-1] > 0.5
    slopes = report.slopes()
    assert set(slopes) == {"stationary", "surrogate", *report.starts}
    assert not report.cases[0].stationary.theory
    assert "spread over the starts" in str(report)


def test_seeds_differ_by_label_and_repeat():
    assert len({seed_of(0, label) for label in ("stationary", "surrogate", "state 0", "state 1")}) == 4
    assert seed_of(1, "stationary") != seed_of(0, "stationary")
    one, two = (brwsim.stress(MARKOV, 16, trees=20, seed=5, threads=threads) for threads in (1, 2))
    np.testing.assert_array_equal(one.mean, two.mean)
    assert one.to_dict() == two.to_dict()


def test_progress_covers_the_whole():
    seen = []
    brwsim.stress(MARKOV, 16, trees=20, progress=seen.append)
    shares = [item.done / item.wanted for item in seen]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert seen[-1].trees == 60


# ---------------------------------------------------------------- sweeps


def test_a_curve_starts_at_1_and_rises(curve):
    assert curve.ratio.shape == (3, 2)
    assert np.all(np.abs(curve.ratio[0] - 1.0) < 4.0 * curve.ratio_stderr[0])
    assert np.all(np.diff(curve.ratio, axis=0) > 0.0)
    np.testing.assert_array_equal(curve.surrogate[0], curve.surrogate[1])  # simulated once
    found = {(item.formula, item.P): item for item in curve.breaks}
    renewal = found["renewal", 128]
    assert (renewal.below, renewal.above) == (0.6, 0.95)
    assert renewal.below < renewal.value < renewal.above
    assert renewal.errors > 4.0
    assert ("theorem1", 128) not in found


def test_a_break_is_interpolated_on_the_keys_scale():
    axis = Axis("persistence", (0.0, 0.9, 0.99))
    errors, slack = np.array([-9.0, -9.0, 40.0]), np.array([-3.0, -1.0, 1.0])
    value, below, above, significance = _first_break(axis, errors, slack)
    assert (below, above, significance) == (0.9, 0.99, 40.0)
    assert value == pytest.approx(1.0 - math.sqrt(0.1 * 0.01))
    assert _first_break(axis, errors - 50.0, slack) is None
    value, below, above, _ = _first_break(axis, errors + 50.0, slack)
    assert value == above == 0.0
    assert math.isnan(below)


def test_a_map_has_a_phase_boundary(heat):
    assert heat.ratio.shape == (3, 3, 1)
    assert heat.is_broken("renewal")[2, 2, 0]
    assert not heat.is_broken("renewal")[0].any()
    assert not heat.is_broken("renewal")[:, 0].any()
    spreads = {found.at for found in heat.breaks if found.formula == "renewal"}
    assert (1.3,) in spreads
    assert "theorem1 as well" in str(heat)


def test_spread_keeps_the_entropy_rate():
    for share in (0.5, 0.2):
        for spread in (0.0, 0.5):
            process = process_at({"name": "markov", "share": share}, {"spread": spread})
            assert process.mu == pytest.approx(0.2 * (1 - share) + 1.166 * share)
            assert np.ptp([law.mu for law in process.state_laws]) == pytest.approx(spread)


def test_values_of_a_sweep():
    spec = {"name": "markov"}
    (axis,) = parse_sweep("persistence=0..0.999@4", spec)
    np.testing.assert_allclose(axis.values, [0.0, 0.9, 0.99, 0.999])
    assert axis.values[0] == 0.0
    assert axis.values[-1] == 0.999
    (axis,) = parse_sweep("rho=-0.9..0.9@3", {"name": "ar1"})
    np.testing.assert_allclose(axis.values, [-0.9, 0.0, 0.9], atol=1e-15)
    (axis,) = parse_sweep("vocab=10..13@9", spec)
    assert axis.values == (10, 11, 12, 13)
    (axis,) = parse_sweep("low=0.3,0.1,0.3", spec)
    assert axis.values == (0.1, 0.3)
    assert len(parse_sweep("persistence=0..0.9", spec)[0].values) == 12
    assert parse_sweep(None, spec) == ()


# ---------------------------------------------------------------- output


@pytest.mark.parametrize("name", ["report", "curve", "heat"])
def test_json_xarray_and_file_hold_the_same(name, request, tmp_path):
    report = request.getfixturevalue(name)
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    dataset = report.to_xarray()
    report.save(tmp_path / "stress.h5")
    with h5py.File(tmp_path / "stress.h5") as file:
        assert file.attrs["filetype"] == "brwsim stress"
        assert file.attrs["schema_version"].tolist() == [1, 0]
        assert json.loads(file["breaks_json"][()]) == data["breaks"]
        for key, array in data["arrays"].items():
            assert dataset[key].dims == tuple(array["dims"])
            assert [scale[0].name[1:] for scale in file[key].dims] == array["dims"]
            values = np.array(array["values"], dtype=np.float64)
            np.testing.assert_array_equal(dataset[key], values)
            np.testing.assert_array_equal(file[key], np.where(np.isnan(values), file[key], values))
            assert file[key].attrs["units"] in ("tokens per call", "1")
    assert dataset["iid_theorem1"].attrs["kind"] == "iid-upper"
    assert dataset["annealed_markov"].attrs["kind"] == "upper"
    assert list(dataset["start"].values) == ["state 0", "state 1"]
    assert [path.name for path in tmp_path.iterdir()] == ["stress.h5"]


@pytest.mark.parametrize("name", ["report", "curve", "heat"])
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_figures(name, suffix, request, tmp_path):
    pytest.importorskip("matplotlib")
    report = request.getfixturevalue(name)
    paths = [tmp_path / f"{i}.{suffix}" for i in range(2)]
    for path in paths:
        report.plot(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    if suffix == "svg":
        text = paths[0].read_text()
        assert {"report": "theorem1 (iid-upper)", "curve": "persistence", "heat": "spread"}[name] in text


def test_text_says_what_breaks(report, curve):
    text = str(report)
    assert "renewal is exceeded at" in text
    assert "theorem1 is not exceeded at any P" in text
    assert "sharp_markov" in text
    assert max(map(len, text.split("\n"))) <= 130
    assert "the least persistence" in str(curve)
    assert "never" in str(curve)
    assert "persistence: 3 values" in repr(curve)


def test_without_xarray_it_says_what_to_install(report, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "xarray":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InvalidInput, match="xarray"):
        report.to_xarray()


def test_bad_places(report, tmp_path):
    with pytest.raises(InvalidInput, match=r"\.png"):
        report.plot(tmp_path / "figure.gif")
    with pytest.raises(FileError, match="does not exist"):
        report.save(tmp_path / "no" / "stress.h5")


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("dist", "sweep", "message"),
    [
        ("dirichlet", None, "dirichlet is i.i.d. already"),
        ('mixture:laws=["zipf"]', None, "mixture is i.i.d. already"),
        ("markov:start=0", None, "leave out start"),
        (Markov(start=1), None, "leave out start"),
        ("markov", "persistence=", "holds '', which is no number"),
        ("markov", "persistence", "is not KEY=VALUES"),
        ("markov", "=1,2", "is not KEY=VALUES"),
        ("markov", "persistence=0.9..0", "empty or reversed"),
        ("markov", "persistence=0.5..0.5", "empty or reversed"),
        ("markov", "persistence=0..x", "holds 'x', which is no number"),
        ("markov", "persistence=0..nan", "must be finite"),
        ("markov", "persistence=0..0.9@1", "2 to 256 values, not 1"),
        ("markov", "persistence=0..0.9@2.5", "2 to 256 values, not 2.5"),
        ("markov", "persistence=0.5", "has 1 values"),
        ("markov", "persistence=0..1", "persistence must be at least 0 and below 1"),
        ("markov", "persistence=0.5,1.5", "persistence must be at least 0 and below 1"),
        ("ar1", "rho=-1..0.5", "rho must lie strictly between -1 and 1"),
        ("ar1", "persistence=0..0.5", "no key 'persistence'.*choose one of rho"),
        ("markov", "laws=1,2", "no key 'laws' to sweep over"),
        ("markov", "start=0,1", "no key 'start' to sweep over"),
        ("markov", "spread=0..2", "spread must be at least 0 and below 1.366"),
        ("regimes", "tail=0..1", "tail must be above 0"),
        ("markov", ["low=0.1,0.2", "low=0.1,0.2"], "given twice"),
        ("markov", ["low=0.1,0.2", "spread=0.1,0.2"], "spread sets low and high"),
        ("markov", ["low=0.1,0.2", "high=1,2", "share=0.1,0.2"], "one key or two, not 3"),
        ("markov", [], "one key or two, not 0"),
        ("markov", ["low=0.1..0.2@200", "high=1..2@200"], "40000 points"),
        (Markov(), "persistence=0,0.5", "not both forms"),
        ("nope", "x=1,2", "nope"),
    ],
)
def test_bad_input(dist, sweep, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        brwsim.stress(dist, 16, sweep=sweep, trees=2)
    assert "\n" not in str(caught.value)


# ---------------------------------------------------------------- the command


def invoke(*args, code=0):
    found = CliRunner().invoke(main, ["stress", *map(str, args)])
    assert found.exit_code == code, found.output
    return found


def test_command_prints_writes_and_draws(tmp_path):
    out, figure = tmp_path / "stress.h5", tmp_path / "map.png"
    found = invoke(
        "--dist", "markov:vocab=50", "--P", "16", "--trees", 30, "--sweep", "persistence=0,0.9",
        "--sweep", "spread=0.5,1", "--out", out, "--plot", figure,
    )  # fmt: skip
    assert "process over surrogate at P=16" in found.stdout
    assert out.exists()
    assert figure.exists()
    assert f"report in {out}" in found.stderr


def test_command_prints_json():
    found = invoke("--dist", "ar1:levels=3,vocab=50", "--P", "4,16", "--trees", 20, "--json")
    data = json.loads(found.stdout)
    assert data["P"] == [4, 16]
    assert data["starts"] == ["value -1", "value +0", "value +1"]
    assert len(data["arrays"]["ratio"]["values"]) == 2


def test_command_refuses_before_it_computes(tmp_path):
    assert "reversed" in invoke("--sweep", "persistence=1..0", code=2).stderr
    assert "i.i.d. already" in invoke("--dist", "dirichlet", code=2).stderr
    assert "not both" in invoke("--trees", 2, "--rel-err", 0.1, code=2).stderr
    assert invoke("--out", tmp_path / "no" / "x.h5", code=5).stderr
    assert invoke("--plot", tmp_path / "x.gif", code=2).stderr
    assert "Traceback" not in invoke("--seed", -1, code=2).stderr
    assert not list(tmp_path.iterdir())
