"""The benchmarks' own logic. Nothing here asserts a time."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent.parent))

import brwsim
from benchmarks import compiled, history, naive, rivals, suite, trend
from benchmarks.__main__ import main
from benchmarks.cases import DISTS, Kernel, grid_to, law
from benchmarks.compare import changes, report
from benchmarks.errors import BadFile, BenchmarkError
from benchmarks.measure import Measurement, count_for, interleaved
from benchmarks.precision import NaiveWork
from benchmarks.record import Record, load
from benchmarks.scale import QUICK
from benchmarks.table import markdown, number

ROOT = Path(__file__).parent.parent
TINY = dataclasses.replace(
    QUICK,
    rounds=2,
    sample_seconds=1e-4,
    speed_sizes=(2, 8),
    naive_cases=(("dirichlet-50", 8),),
    naive_rounds=2,
    cpp_sizes=(8,),
    cpp_verified_size=64,
    precision_range=(2, 8),
    rel_err=0.1,
    variance_trees=50,
    warm_starts=1,
    sweep_grid="1..8",
    memory_sizes=(1, 4),
    scaling_sizes=(4, 16),
    scaling_vocabs=(50, 500),
)
COMPILED = [name for name in DISTS if compiled.supports(law(name))]


# --- the rivals give the same answers ---


@pytest.mark.parametrize("gammas", [False, True])
@pytest.mark.parametrize("dist", ["dirichlet:vocab=50,alpha=0.02", "dirichlet:vocab=5,alpha=2.0"])
def test_naive_twin_agrees_with_brwsim(dist, gammas):
    process = brwsim.sweep(dist, "1", trees=1).spec.process
    children = naive.children_of(process, np.random.default_rng(3), gammas)
    x = np.array([naive.grow_tree(children, 64) for _ in range(400)])
    stderr = x.std(axis=0, ddof=1) / math.sqrt(len(x))
    exact = brwsim.sweep(dist, "1..64", rel_err=1e-3)
    error = np.hypot(stderr, exact.stderr)
    assert np.all(np.abs(x.mean(axis=0) - exact.mean)[1:] < 4.5 * error[1:])


@pytest.mark.parametrize("dist", ["softmax-normal:vocab=30", "table:p=[0.6,0.25,0.1,0.05]", "geometric"])
def test_naive_twin_knows_the_other_laws(dist):
    exact = brwsim.sweep(dist, "1..64", trees=200)
    mean, stderr = naive.mean_and_stderr(exact.spec.process, 64, 200)
    np.testing.assert_array_less(np.abs(mean - exact.mean), 4.5 * np.hypot(stderr, exact.stderr) + 1e-12)


def test_naive_pruning_changes_nothing():
    """Dropping hopeless children early leaves the sums as they are: an exact law, counted by hand."""
    process = law("table-4")
    probs = process.rows()[0][1].probs
    level, levels = np.ones(1), [np.ones(1)]
    for _ in range(7):
        level = np.outer(level, probs).ravel()
        levels.append(level)
    exact = np.cumsum(-np.sort(-np.concatenate(levels))[:30])
    np.testing.assert_allclose(naive.grow_tree(naive.children_of(process, None), 30), exact, rtol=1e-12)


def test_naive_twin_refuses_a_law_it_does_not_know():
    with pytest.raises(TypeError, match="mixture"):
        naive.children_of(law("mixture"), np.random.default_rng(0))


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    if compiled.compiler() is None:
        pytest.skip("no C++ compiler")
    return compiled.Program.build(tmp_path_factory.mktemp("cpp"))


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("P", [1, 64, 2000])
def test_cpp_grows_the_same_trees(program, name, P):
    kernel = Kernel.of(law(name), np.arange(1, P + 1))
    assert program.check_same_trees(kernel, 4) <= compiled.SAME_TREE
    too_high = dataclasses.replace(kernel, theta=0.5)
    np.testing.assert_allclose(program.grow(too_high, 3)[0], kernel.grow(3)[0], rtol=compiled.SAME_TREE)


def test_cpp_entropy_terms_average_to_zero(program):
    kernel = Kernel.of(law("dirichlet-50"), np.array([16, 256]))
    _, terms, _ = program.grow(kernel, 4000)
    assert np.all(np.abs(terms.mean(axis=0)) < 4.5 * terms.std(axis=0) / math.sqrt(len(terms)))


def test_another_tree_is_noticed(program):
    kernel = Kernel.of(law("dirichlet-50"), grid_to(64))
    other = Kernel.of(law("dirichlet"), grid_to(64))
    with pytest.raises(BenchmarkError, match="different trees"):
        program.check_same_trees(dataclasses.replace(kernel, tables=other.tables), 3)


def test_cpp_is_left_out_without_a_compiler(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert rivals.against_cpp(TINY) == []
    with pytest.raises(BenchmarkError, match="nothing was measured"):
        suite.run(TINY, ["cpp"])


# --- measuring ---


def test_interleaving_takes_turns():
    seen = []
    times = interleaved({"a": lambda: seen.append("a"), "b": lambda: seen.append("b")}, 2)
    assert "".join(seen) == "ababab"  # a warm-up and two rounds
    assert {name: len(values) for name, values in times.items()} == {"a": 2, "b": 2}


def test_count_for_is_bounded():
    assert count_for(lambda n: None, 10.0, most=64) == 64


def test_naive_work():
    P, mean = np.array([1, 2, 4]), np.array([1.0, 1.0, 2.0])
    work = NaiveWork.needed(P, mean, np.array([0.0, 3.0, 4.0]), 0.1)
    assert work.trees == 300
    # every tree reaches P = 2 for the 300 needed there, 100 of them go on to 4
    assert work.thrifty_nodes == pytest.approx(300 + 300 + 2 * 100)


@pytest.fixture(scope="module")
def tiny_record():
    return suite.run(TINY)


def test_a_run_has_every_section_and_survives_its_file(tiny_record, tmp_path):
    path = tmp_path / "run.json"
    tiny_record.save(path)
    data = json.loads(path.read_text())
    assert set(data) == {"benchmarks", "scale", "date", "machine", "versions", "commit", "measurements"}
    assert {"cpu", "cores", "memory_bytes"} <= set(data["machine"])
    assert {"python", "numba", "numpy"} <= set(data["versions"])
    assert set(data["commit"]) == {"hash", "dirty"}
    for measured in data["measurements"]:
        assert measured["samples"]
        assert measured["median"] == pytest.approx(np.median(measured["samples"]))
        assert all(map(math.isfinite, measured["samples"])), measured["name"]
    sections = {measured["name"].split("/")[0] for measured in data["measurements"]}
    expected = set(suite.SECTIONS) - (set() if compiled.compiler() else {"cpp"})
    assert sections == expected
    assert load(path) == tiny_record


def test_the_table_names_everything(tiny_record):
    text = markdown(tiny_record)
    for name in DISTS:
        assert f"| {name} " in text
    assert "naive is extrapolated" in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    blocks = text.split("\n\n")
    for block in (block.splitlines() for block in blocks if block.startswith("|")):
        assert len({len(line) for line in block}) == 1
    assert len(lines) > 40


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (1234567.0, "1 230 000"), (0.0123456, "0.0123"), (3e-7, "3e-07")]
)
def test_numbers(value, text):
    assert number(value) == text


# --- comparing made-up files ---


def made_up(date="2026-01-01T00:00:00+00:00", cpu="cpu", scale="full", **medians):
    """A record of times in seconds and speeds, five samples within 2 % of each median."""
    measured = [
        Measurement(
            name,
            "nodes/s" if name.startswith("speed") else "s",
            {"speed": "higher", "slope": ""}.get(name.split("_")[0], "lower"),
            tuple(median * factor for factor in (0.98, 0.99, 1.0, 1.01, 1.02)),
        )
        for name, median in medians.items()
    ]
    where = {"cpu": cpu, "cores": 2, "memory_bytes": 1}
    commit = {"hash": "0" * 40, "dirty": False}
    return Record(scale, date, where, {"python": "3.11.0"}, commit, {m.name: m for m in measured})


def test_changes_tell_slower_from_faster_in_both_directions():
    old = made_up(time_a=1.0, time_b=1.0, time_c=1.0, speed_a=100.0, speed_b=100.0, slope_a=1.0, gone=1.0)
    new = made_up(time_a=1.3, time_b=0.7, time_c=1.1, speed_a=70.0, speed_b=130.0, slope_a=9.0, added=1.0)
    found = {change.name: change for change in changes(old, new)}
    assert {name: change.verdict for name, change in found.items()} == {
        "time_a": "slower",
        "time_b": "faster",
        "time_c": "same",
        "speed_a": "slower",
        "speed_b": "faster",
    }
    assert found["speed_a"].ratio == pytest.approx(1 / 0.7)
    assert found["time_a"].low < 1.3 < found["time_a"].high
    assert report(list(found.values())).endswith("2 slower, 2 faster, 1 the same")
    assert "time_c" in report(list(found.values()), is_full=True)


def test_a_noisy_slowdown_is_no_verdict():
    old, new = made_up(time_a=1.0), made_up(time_a=1.3)
    noisy = dataclasses.replace(new.measurements["time_a"], samples=(0.8, 0.9, 1.3, 1.6, 2.0))
    new = dataclasses.replace(new, measurements={"time_a": noisy})
    assert [change.verdict for change in changes(old, new)] == ["same"]


def invoke(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_compare_exit_codes(tmp_path):
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    made_up(time_a=1.0).save(old)
    made_up(time_a=1.3, cpu="another").save(new)
    assert invoke("compare", old, old).exit_code == 0
    slower = invoke("compare", old, new)
    assert slower.exit_code == 1
    assert "slower  time_a" in slower.output
    assert "another processor" in slower.output
    assert invoke("compare", new, old).exit_code == 0
    assert invoke("compare", old, new, "--threshold", 1.5).exit_code == 0
    assert invoke("compare", old, new, "--threshold", 0.5).exit_code == 2
    assert "median" in invoke("table", old).output


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        "[]",
        "{}",
        '{"benchmarks": 1}',
        '{"benchmarks": 99, "measurements": []}',
        '{"benchmarks": 1, "measurements": [{"name": 3}]}',
    ],
)
def test_bad_files_are_refused_in_a_sentence(tmp_path, text):
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    made_up(time_a=1.0).save(good)
    bad.write_text(text)
    for arguments in (("compare", good, bad), ("compare", bad, good), ("table", bad)):
        answer = invoke(*arguments)
        assert answer.exit_code == 2
        assert str(bad) in answer.output
        assert isinstance(answer.exception, SystemExit)
    with pytest.raises(BadFile):
        load(tmp_path / "missing.json")


def test_compare_runs_as_a_script(tmp_path):
    script = ROOT / "benchmarks" / "compare.py"
    missing = tmp_path / "missing.json"
    done = subprocess.run(
        [sys.executable, str(script), str(missing), str(missing)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "cannot be read" in done.stderr
    assert "Traceback" not in done.stderr


# --- the history of nights ---


def nights(folder, times, cpu="cpu", start=1):
    for day, time in enumerate(times, start=start):
        history.append(folder, made_up(date=f"2026-01-{day:02}T00:00:00+00:00", cpu=cpu, time_a=time))


def verdict(folder):
    return invoke("nightly", "--history", folder, "--no-run")


@pytest.mark.parametrize(
    ("times", "exit_code"),
    [
        ([1.0], 0),
        ([1.0, 1.02, 0.99, 1.0], 0),
        ([1.0, 1.0, 1.0, 1.0, 1.0, 1.4], 0),  # once: perhaps a busy night
        ([1.0, 1.0, 1.0, 1.0, 1.0, 1.4, 1.4], 1),
        ([1.0, 1.0, 1.0, 1.0, 1.0, 1.4, 1.4, 1.4], 1),
        ([1.0, 1.0, 1.0, 1.0, 1.0, 1.4, 1.0, 1.4], 0),  # not in a row
        ([1.0, 1.0, 1.0, 1.0, 1.0, 1.4, 1.4, 1.4, 1.4, 1.4], 0),  # the new normal
        ([1.4, 1.4, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 0),
    ],
)
def test_a_regression_is_one_that_shows_twice_in_a_row(tmp_path, times, exit_code):
    nights(tmp_path, times)
    answer = verdict(tmp_path)
    assert answer.exit_code == exit_code, answer.output
    assert ("twice in a row" in answer.output) == bool(exit_code)
    assert (tmp_path / "trend.png").stat().st_size > 1000


def test_other_machines_do_not_count(tmp_path):
    nights(tmp_path, [0.5] * 5, cpu="a faster one")
    nights(tmp_path, [1.0, 1.0, 1.0], start=6)
    assert len(history.comparable_to_newest(tmp_path)) == 3
    assert verdict(tmp_path).exit_code == 0


def test_baseline_is_the_median_of_the_last_five():
    records = [made_up(time_a=time) for time in (9.0, 8.0, 1.0, 2.0, 3.0, 40.0)]
    assert history.baseline(records).measurements["time_a"].samples == (3.0,)


def test_history_errors_are_sentences(tmp_path):
    assert verdict(tmp_path / "nothing").exit_code == 2
    nights(tmp_path, [1.0])
    (tmp_path / "2026-99.json").write_text("{")
    answer = verdict(tmp_path)
    assert answer.exit_code == 2
    assert "2026-99.json" in answer.output


def test_nightly_measures_and_keeps(tmp_path, monkeypatch, tiny_record):
    monkeypatch.setattr(suite, "run", lambda scale, only, say: tiny_record)
    answer = invoke(
        "nightly", "--history", tmp_path / "new" / "folder", "--quick", "--plot", tmp_path / "trend.svg"
    )
    assert answer.exit_code == 0, answer.output
    assert "first run" in answer.output
    assert (tmp_path / "trend.svg").read_text().startswith("<?xml")
    assert len(list((tmp_path / "new" / "folder").glob("*.json"))) == 1


def test_trend_needs_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert not trend.plot([made_up(time_a=1.0)], tmp_path / "trend.png")
