"""The command line as a person or a script meets it: output, exit codes, and never a traceback."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import brwsim
from brwsim.cli.main import COMMANDS, main

SMALL = ["--P", "1..32", "--dist", "dirichlet:vocab=50,alpha=0.02", "--trees", "40"]


def invoke(*args: object, code: int = 0):
    """Run a command; its result, after a check that it exits with ``code`` and no traceback."""
    result = CliRunner().invoke(main, [str(arg) for arg in args], prog_name="brwsim")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    return result


def brwsim_process(*args: object, **options) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "brwsim", *map(str, args)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=Path(__file__).parent.parent, **(pipes | options))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A result file; tests do not change it."""
    path = tmp_path_factory.mktemp("run") / "run.h5"
    invoke("sweep", *SMALL, "--out", path)
    return path


@pytest.fixture
def bad_files(run, tmp_path):
    """Files that are not results, by name, in a folder of their own."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("hello\n")
    (tmp_path / "truncated").write_bytes(run.read_bytes()[:5000])
    h5py.File(tmp_path / "foreign", "w").close()
    shutil.copy(run, tmp_path / "newer")
    with h5py.File(tmp_path / "newer", "a") as file:
        file.attrs["schema_version"] = np.array([9, 0])
    invoke("sweep", "--P", "1,2", "--dist", "uniform", "--out", tmp_path / "another")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


# ---------------------------------------------------------------- help


def test_help_lists_commands_in_the_order_of_work_and_exit_codes():
    out = invoke("--help").stdout
    positions = [out.index(f"\n  {name} ") for name in COMMANDS]
    assert positions == sorted(positions)
    assert "130  interrupted" in out
    assert invoke().stdout == out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command):
    out = invoke(command, "--help").stdout
    assert out.startswith(f"Usage: brwsim {command}")
    assert "--help" in out


def test_sweep_help_lists_every_law_with_its_keys():
    from brwsim.process.laws import LAWS
    from brwsim.simulate import DEFAULT_REL_ERR

    out = " ".join(invoke("sweep", "--help").stdout.split())
    for name in LAWS:
        assert name in out
    assert "Keys: vocab=32000, (alpha | entropy)." in out
    assert "(laws, transition | low, high, persistence, share, vocab), start (optional)." in out
    assert "mixture:laws=" in out
    assert "Keys: p (needed)." in out
    assert f"[default: {DEFAULT_REL_ERR}]" in out


def test_keys_that_exclude_each_other_do():
    """What help shows as (a | b) are keys of the process, none of them needed."""
    from brwsim.process import PROCESSES

    for process in PROCESSES.values():
        parameters = inspect.signature(process).parameters
        for key in (key for group in process.either for key in group):
            assert parameters[key].default is None, (process.name, key)


def test_examples_in_help_run():
    from brwsim.cli.sweep import sweep

    for line in sweep.epilog.splitlines():
        if line.strip().startswith("brwsim sweep --dist"):
            _, _, *args = shlex.split(line)
            invoke("sweep", *args, "--P", "1,2", "--trees", 4)


def test_version():
    assert invoke("--version").stdout == f"brwsim {brwsim.__version__}\n"


def test_command_modules_import_nothing_heavy():
    code = (
        "import sys, brwsim.cli.main as m; before = set(sys.modules); "
        "[m.main.get_command(None, name) for name in m.COMMANDS]; "
        "print(*sorted(set(sys.modules) - before))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name.split(".")[0] for name in found.stdout.split()} <= {"brwsim", "tomllib", "json", "_json"}


# ---------------------------------------------------------------- each command


def test_sweep_prints_the_table_and_says_how_to_keep_it():
    result = invoke("sweep", *SMALL)
    assert "annealed" in result.stdout
    assert "mu 0.96" in result.stdout
    assert "--out run.h5" in result.stderr


def test_sweep_says_where_the_file_is_and_what_is_next(tmp_path):
    result = invoke("sweep", *SMALL, "--out", tmp_path / "a.h5")
    assert f"brwsim compare {tmp_path / 'a.h5'}" in result.stderr
    assert str(tmp_path) not in result.stdout
    before = contents(tmp_path)
    invoke("sweep", *SMALL, "--out", tmp_path / "a.h5")
    assert brwsim.load(tmp_path / "a.h5").trees == 40
    assert before.keys() == contents(tmp_path).keys()


def test_sweep_suggests_what_works(tmp_path, monkeypatch):
    script = tmp_path / "bin" / "brwsim"
    script.parent.mkdir()
    script.touch(0o755)
    monkeypatch.setattr(sys, "argv", [str(script)])
    out = tmp_path / "a.h5"
    args = ["sweep", "--P", "1", "--dist", "uniform", "--out", out]
    monkeypatch.setenv("PATH", "")
    assert f"next: {script} compare {out}" in invoke(*args).stderr
    monkeypatch.setenv("PATH", str(script.parent))
    assert f"next: brwsim compare {out}" in invoke(*args).stderr
    monkeypatch.setattr(sys, "argv", [str(Path(brwsim.__file__).parent / "__main__.py")])
    monkeypatch.setenv("PATH", "")
    assert f"next: python -m brwsim compare {out}" in invoke(*args).stderr
    monkeypatch.setattr("brwsim.cli.sweep.find_spec", lambda name: None)
    assert "plot" not in invoke(*args).stderr


def test_continuing_is_said(tmp_path):
    out = tmp_path / "a.h5"
    assert "continued" not in invoke("sweep", *SMALL, "--out", out).stderr
    assert f"continued: 40 trees were in {out}\n" in invoke("sweep", *SMALL, "--out", out).stderr
    added = invoke("sweep", *SMALL, "--seed", 7, "--out", out).stderr
    assert f"continued: 40 trees were in {out}, of other seeds; those of seed 7 are added" in added


def test_notes_of_a_long_sweep(tmp_path):
    from brwsim.cli.progress import Notes
    from brwsim.engine.run import Progress

    def at(seconds: float, is_forecast: bool = True) -> Progress:
        return Progress(10, 30010, 64, 3_200_000, is_forecast, seconds)

    notes = Notes(0, tmp_path / "a.h5")
    assert list(notes.of(at(0.5))) == []  # too early to tell
    assert list(notes.of(at(2.0, is_forecast=False))) == []
    assert list(notes.of(at(2.0))) == ["about 3,200,000 trees, 100 min; Ctrl-C keeps what is done"]
    assert list(notes.of(at(4.0))) == []
    assert next(Notes(0, None).of(at(100.0))).startswith("about 3,200,000 trees, 83 h; without --out")
    assert list(Notes(0, None).of(Progress(10, 20, 64, 128, True, 5.0))) == []  # soon done


def test_a_precision_out_of_reach_is_refused_at_once():
    error = invoke("sweep", *SMALL[:4], "--rel-err", "1e-7", code=2).stderr
    assert "rel_err 1e-07 is out of reach" in error


def test_show_prints_exactly_the_result(run):
    data = json.loads(invoke("show", run, "--json").stdout)
    assert data == json.loads(json.dumps(brwsim.load(run).to_dict()))
    assert data["trees"] == 40
    assert invoke("show", run).stdout == f"{brwsim.load(run)}\n"


def test_sweep_prints_the_same_json(run):
    swept = json.loads(invoke("sweep", *SMALL, "--json").stdout)
    assert swept == json.loads(invoke("show", run, "--json").stdout)


def test_the_number_of_threads_changes_nothing():
    one, three = (invoke("sweep", *SMALL, "--json", "--threads", n).stdout for n in (1, 3))
    assert one == three


def test_sweep_to_a_precision():
    data = json.loads(
        invoke("sweep", "--P", "4,16", "--dist", "uniform:vocab=3", "--rel-err", 0.1, "--json").stdout
    )
    assert data["stderr"] == [0.0, 0.0]
    data = json.loads(invoke("sweep", *SMALL[:4], "--rel-err", 0.05, "--json").stdout)
    assert all(e <= 0.05 * m for m, e in zip(data["mean"], data["stderr"], strict=True))


def test_a_process_from_toml(tmp_path):
    path = tmp_path / "process.toml"
    path.write_text(
        'name = "mixture"\n[[laws]]\nname = "uniform"\nvocab = 2\n[[laws]]\nname = "uniform"\nvocab = 8\n'
    )
    data = json.loads(invoke("sweep", "--spec", path, "--P", "1..8", "--trees", 8, "--json").stdout)
    assert [law["vocab"] for law in data["spec"]["process"]["laws"]] == [2, 8]


def test_compare(run):
    out = invoke("compare", run, "--fail-on-violation").stdout
    assert "no proved bound is violated at 32 values of P" in out
    data = json.loads(invoke("compare", run, "--P", "8,32", "--json").stdout)
    assert data["P"] == [8, 32]
    assert data["bounds"]["theorem1"]["kind"] == "upper"


def test_compare_fails_on_a_violation_if_asked(run, tmp_path):
    result = brwsim.load(run)
    blocks = {k: dataclasses.replace(b, mean_x=b.mean_x * 4) for k, b in result.blocks.items()}
    path = dataclasses.replace(result, blocks=blocks).save(tmp_path / "wrong.h5").path
    assert "violations" in invoke("compare", path).stdout
    failed = invoke("compare", path, "--fail-on-violation", code=3)
    assert failed.stderr.startswith("brwsim: error: ")
    assert json.loads(invoke("compare", path, "--fail-on-violation", "--json", code=3).stdout)["violations"]


def test_plot(run, tmp_path):
    pytest.importorskip("matplotlib")
    shutil.copy(run, tmp_path / "run.h5")
    invoke("plot", tmp_path / "run.h5")
    invoke("plot", tmp_path / "run.h5", "--out", tmp_path / "figure.svg")
    assert set(contents(tmp_path)) == {"run.h5", "run.png", "figure.svg"}


def test_merge_is_a_union(run, tmp_path):
    other, out = tmp_path / "other.h5", tmp_path / "all.h5"
    invoke("sweep", *SMALL, "--seed", 1, "--out", other)
    invoke("merge", run, other, run, "--out", out)
    assert brwsim.load(out).trees == 80
    assert brwsim.load(out).seed == [0, 1]
    invoke("merge", run, "--out", out)  # what is there is kept
    assert brwsim.load(out).trees == 80
    invoke("merge", run, other, "--out", other)
    assert json.loads(invoke("show", other, "--json").stdout) == json.loads(
        invoke("show", out, "--json").stdout
    )


def test_bound_from_moments_and_from_a_law():
    data = json.loads(invoke("bound", "--mu", 0.683, "--mu2", 1.2, "--P", "1..4096", "--json").stdout)
    assert len(data["P"]) == len(data["bounds"]["renewal"]) == 4096
    assert set(data["bounds"]) == {"theorem1", "renewal", "lambert", "corollary1", "sharp"}
    assert (
        "leaf_count"
        in json.loads(invoke("bound", "--mu", 0.683, "--mu2", 1.2, "--vocab", 50, "--json").stdout)["bounds"]
    )
    long, short = (
        invoke("bound", "--mu", 0.683, "--mu2", 1.2, key, 50) for key in ("--vocab-size", "--vocab")
    )
    assert "leaf_count" in long.stdout
    assert long.stdout == short.stdout
    assert "corollary1" in long.stdout
    assert "annealed" in invoke("bound", "--dist", "dirichlet:vocab=50,alpha=0.02", "--P", "1..64").stdout


def test_profile(tmp_path):
    path = tmp_path / "logprobs.npy"
    np.save(path, np.log([[0.5, 0.5], [0.25, 0.75]]))
    data = json.loads(invoke("profile", path, "--json").stdout)
    assert data["pooled"]["mu"]["lower"] == pytest.approx(0.6277, abs=1e-4)
    assert "mu lower" in invoke("profile", path, "--vocab-size", 2).stdout
    assert invoke("profile", path, "--vocab", 2).stdout == invoke("profile", path, "--vocab-size", 2).stdout
    rng = np.random.default_rng(0)
    np.save(path, np.log(rng.dirichlet([0.5] * 4, size=(2, 60))))
    assert "Ljung-Box" not in invoke("profile", path).stdout
    assert "Ljung-Box" in invoke("profile", path, "--dependence").stdout
    assert "dependence" not in json.loads(invoke("profile", path, "--json").stdout)["files"][0]
    data = json.loads(invoke("profile", path, "--json", "--dependence").stdout)
    assert data["files"][0]["dependence"]["positions"] == 120


def test_doctor():
    assert "kernel cache" in invoke("doctor").stdout
    data = json.loads(invoke("doctor", "--json").stdout)
    assert data["versions"]["brwsim"]
    assert "driver" in data["cuda"]


# ---------------------------------------------------------------- bad input

BAD_VALUES = [
    *(
        ("sweep", "--P", grid)
        for grid in ("", "5..1", "0", "-3", "1..0", "1..99999999999", "a", "1,,2", "1..8@1")
    ),
    *(
        ("sweep", "--dist", dist)
        for dist in (
            "",
            "nope",
            "dirichlet:alpha=0",
            "dirichlet:alpha=-1",
            "dirichlet:alpha=NaN",
            "dirichlet:beta=1",
            "dirichlet:alpha",
            "dirichlet:vocab=1",
            "table:p=[0.5,0.4]",
            "table:p=[1.5,-0.5]",
            "table:p=[",
            "table",
            "mixture:laws=3",
        )
    ),
    *(("sweep", "--trees", n) for n in ("0", "-1", "1.5", "x", "999999999999")),
    *(("sweep", "--rel-err", r) for r in ("0", "-1", "1.01", "nan", "inf", "x")),
    *(("sweep", "--seed", s) for s in ("-1", "18446744073709551616", "x")),
    *(("sweep", "--threads", n) for n in ("0", "-2", "x")),
    ("sweep", "--trees", "5", "--rel-err", "0.1"),
    ("sweep", "--estimator", "magic"),
    ("sweep", "--dist", "uniform", "--spec", "x.toml"),
    ("sweep", "--nope"),
]


@pytest.mark.parametrize("args", BAD_VALUES, ids=" ".join)
def test_bad_values_exit_with_2_before_anything_is_written(args, tmp_path):
    result = invoke(*args, "--out", tmp_path / "run.h5", code=2)
    assert result.stdout == ""
    assert result.stderr.startswith("brwsim: error: ")
    assert len(result.stderr.splitlines()) == 1
    assert contents(tmp_path) == {}


@pytest.mark.parametrize(
    "args",
    [
        ("nope",),
        ("show",),
        ("bound",),
        ("bound", "--mu", "1"),
        ("bound", "--mu", "0", "--mu2", "1"),
        ("bound", "--mu", "1", "--mu2", "0.5"),
        ("bound", "--mu", "nan", "--mu2", "1"),
        ("bound", "--mu", "1", "--mu2", "2", "--vocab", "1"),
        ("bound", "--mu", "1", "--mu2", "2", "--P", "0"),
        ("bound", "--dist", "dirichlet", "--mu", "1"),
        ("bound", "--dist", "nope"),
        ("merge", "--out", "x.h5"),
        ("profile",),
        ("profile", "x.json", "--vocab-size", "x"),
    ],
    ids=" ".join,
)
def test_bad_usage_of_other_commands(args):
    assert invoke(*args, code=2).stderr.startswith("brwsim: error: ")


@pytest.mark.parametrize(
    "name", ["folder", "empty", "text", "truncated", "foreign", "newer", "another", "no/x.h5"]
)
def test_bad_output_paths_exit_with_5_and_change_nothing(bad_files, run, name):
    before = contents(bad_files)
    for command in (["sweep", *SMALL], ["merge", run]):
        result = invoke(*command, "--out", bad_files / name, code=5)
        assert name.split("/")[0] in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert contents(bad_files) == before


@pytest.mark.parametrize("command", ["show", "compare", "plot"])
@pytest.mark.parametrize("name", ["folder", "empty", "text", "truncated", "foreign", "newer", "missing"])
def test_bad_results_exit_with_5_and_change_nothing(bad_files, command, name):
    before = contents(bad_files)
    result = invoke(command, bad_files / name, code=5)
    assert name in result.stderr
    assert contents(bad_files) == before


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(tmp_path):
    tmp_path.chmod(0o500)
    assert "not writable" in invoke("sweep", *SMALL, "--out", tmp_path / "a.h5", code=5).stderr


def test_bad_figures(run, tmp_path):
    before = contents(run.parent)
    assert ".png, .svg, .pdf" in invoke("plot", run, "--out", tmp_path / "a.gif", code=2).stderr
    invoke("plot", run, "--out", tmp_path / "no" / "a.png", code=5)
    assert contents(tmp_path) == {}
    assert contents(run.parent) == before


def test_errors_read_alike():
    for args in (
        ("sweep", "--nope"),
        ("sweep", "--trees", "x"),
        ("show",),
        ("nope",),
        ("sweep", "--dist", "x"),
    ):
        message = invoke(*args, code=2).stderr.removeprefix("brwsim: error: ").strip().partition(" (see")[0]
        assert message[0].islower(), message
        assert not message.endswith("."), message


def test_comparing_a_P_that_is_not_there(run):
    assert "P=33" in invoke("compare", run, "--P", "33", code=2).stderr


def test_merging_different_sweeps(run, bad_files):
    before = contents(bad_files)
    invoke("merge", run, bad_files / "another", "--out", bad_files / "out.h5", code=2)
    assert contents(bad_files) == before


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("hello", 5),
        ("vocab = 3\n", 2),
        ('name = "uniform"\nwidth = 3\n', 2),
        ('name = "uniform"\nvocab = 2024-01-01\n', 2),
        ('name = "dirichlet"\nalpha = nan\n', 2),
        ("[process]\n", 2),
    ],
)
def test_bad_toml(tmp_path, text, code):
    path = tmp_path / "process.toml"
    path.write_text(text)
    invoke("sweep", "--spec", path, "--out", tmp_path / "a.h5", code=code)
    assert set(contents(tmp_path)) == {"process.toml"}


BAD_RESPONSES = {
    "empty": "",
    "not-json": "{",
    "no-logprobs": '{"choices":[{"message":{"content":"hi"}}]}',
    "positive": '{"choices":[{"logprobs":{"content":[{"token":"a","logprob":1.0,'
    '"top_logprobs":[{"token":"a","logprob":1.0}]}]}}]}',
    "nan": '{"choices":[{"logprobs":{"content":[{"token":"a","logprob":NaN,'
    '"top_logprobs":[{"token":"a","logprob":NaN}]}]}}]}',
}


@pytest.mark.parametrize("name", [*BAD_RESPONSES, "missing"])
def test_bad_responses(tmp_path, name):
    path = tmp_path / f"{name}.json"
    if name in BAD_RESPONSES:
        path.write_text(BAD_RESPONSES[name])
    result = invoke("profile", path, code=5)
    assert path.name in result.stderr
    assert len(result.stderr.splitlines()) == 1


texts = st.one_of(
    st.text(max_size=40),
    st.text(alphabet="dirchletable:=,.-+0123456789[]{}\"'eNa@P", max_size=40),
    st.builds(
        "{}:{}={}".format,
        st.sampled_from(["table", "geometric", "mixture"]),
        st.text(max_size=5),
        st.text(max_size=20),
    ),
)


@settings(max_examples=60, deadline=None)
@given(dist=texts, grid=texts)
def test_any_text_is_answered_without_a_traceback(dist, grid):
    for args in (["--dist", dist, "--P", "1"], ["--mu", "0.5", "--mu2", "0.5", f"--P={grid[:12]}"]):
        result = CliRunner().invoke(main, ["bound", *args])
        assert isinstance(result.exception, SystemExit | None)
        assert result.exit_code in (0, 2)


@settings(max_examples=40, deadline=None)
@given(content=st.one_of(st.binary(max_size=200), texts.map(str.encode)))
def test_any_file_is_answered_without_a_traceback(content, tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / "file"
    path.write_bytes(content)
    for args in (["show", path], ["profile", path], ["sweep", "--P", "1", "--trees", "1", "--spec", path]):
        result = CliRunner().invoke(main, [str(arg) for arg in args])
        assert isinstance(result.exception, SystemExit | None)
        assert result.exit_code in (2, 5)
    assert path.read_bytes() == content


# ---------------------------------------------------------------- as a process


def test_module_runs_and_keeps_stdout_for_data(run):
    process = brwsim_process("show", run, "--json")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["trees"] == 40


def test_no_progress_where_no_terminal_is():
    process = brwsim_process("sweep", *SMALL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "growing" not in err


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX terminal")
def test_progress_on_a_terminal(tmp_path):
    import pty

    ours, theirs = pty.openpty()
    process = brwsim_process(
        "sweep", *SMALL[:4], "--rel-err", "0.01", stdout=subprocess.DEVNULL, stderr=theirs
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    assert process.wait(60) == 0
    assert b"growing trees" in seen
    assert b"100%" in seen


@pytest.mark.skipif(sys.platform == "win32", reason="a signal to a process is POSIX")
def test_interrupted_sweeps_keep_what_is_done_and_go_on(tmp_path):
    path = tmp_path / "run.h5"
    args = ["sweep", "--P", "1..2048", "--rel-err", "1e-5", "--threads", "1", "--out", path]
    process = brwsim_process(*args)
    deadline = time.monotonic() + 60
    while not path.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    kept = brwsim.load(path).trees
    assert f"{kept} trees are kept in {path}; run the same command again" in err
    assert set(contents(tmp_path)) == {"run.h5"}


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes")
def test_a_reader_that_goes_away_is_no_error(run):
    process = brwsim_process("show", run, "--json", stderr=subprocess.STDOUT)
    assert process.stdout.read(1) == "{"
    process.stdout.close()
    assert process.wait(60) in (0, 1)

    process = brwsim_process("show", run)
    process.stdout.close()
    with process.stderr as stderr:
        assert stderr.read() == ""
    assert process.wait(60) == 1
