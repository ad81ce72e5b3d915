"""The house rules that a reader cannot see: who may import whom, and what is imported when."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "brwsim"
# Each may import those before it (and itself); what is above the line of data flow stays below it.
LAYERS = [
    {"errors", "version"},
    {"parse"},
    {"theory", "traces.readers"},
    {"traces", "process"},
    {"spec", "estimate"},
    {"kernels"},
    {"engine"},
    {"results"},
    {"report"},
    {"simulate"},
    {"stresstest"},
    {"cli", "__main__", "__init__"},
]
# Imported inside a function, for a reason given there
LATE = {("process", "parse"), ("results", "report"), ("report", "cli")}


def modules():
    return sorted(ROOT.rglob("*.py"))


def part_of(dotted: str) -> str:
    names = dotted.split(".")
    return names[1] if len(names) > 1 else "__init__"


def level(part: str) -> int:
    return next(i for i, layer in enumerate(LAYERS) if part in layer)


def imports(path: Path):
    """(module, whether at the top of the file) of every absolute import of brwsim in a file."""
    tree = ast.parse(path.read_text())
    checking = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and getattr(block.test, "id", "") == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if id(node) in checking:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module, id(node) in top
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in top


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_follow_the_data(path):
    part = path.relative_to(ROOT).parts[0].removesuffix(".py")
    for module, at_top in imports(path):
        if module.split(".")[0] == "numba":
            assert part == "kernels" or not at_top, f"only kernels/ imports numba at the top, not {path}"
        if module.split(".")[0] != "brwsim" or part in ("__init__", "cli"):
            continue
        target = part_of(module)
        allowed = level(target) <= level(part) or (not at_top and (part, target) in LATE)
        assert allowed, f"{part} imports {target}"


def test_no_module_is_too_long():
    long = {path.name: n for path in modules() if (n := len(path.read_text().splitlines())) > 350}
    assert not long


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_messages_of_errors_read_alike(path):
    """Printed after "brwsim: error: ": no capital at the start, no full stop at the end."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call) or not node.exc.args:
            continue
        message = node.exc.args[0]
        parts = message.values if isinstance(message, ast.JoinedStr) else [message]
        texts = [part.value if isinstance(part, ast.Constant) else "..." for part in parts]
        if all(isinstance(text, str) for text in texts):
            assert not re.search(r"(?<!\.)\.$", texts[-1]), f"line {node.lineno}: {texts[-1]}"
            assert not re.match(r"[A-Z][a-z]|A ", texts[0]), f"line {node.lineno}: {texts[0]}"


def test_importing_brwsim_stays_light():
    """Numba, SciPy's slow parts, h5py, matplotlib and xarray are imported where they are used."""
    code = "import sys, brwsim, brwsim.cli.main; print(*sorted(m for m in sys.modules if '.' not in m))"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"numba", "h5py", "matplotlib", "xarray", "pandas"} & set(found)
