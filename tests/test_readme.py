"""What the documents promise is true: examples run and print what they show, tables match the code.

``python tests/test_readme.py`` runs the examples and writes the outputs they have now into README.md.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from brwsim.cli.main import COMMANDS, main
from brwsim.parse import parse_dist, parse_grid
from brwsim.process.laws import LAWS
from brwsim.results import schema
from brwsim.theory.bounds import BOUNDS

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DOCUMENTS = [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
ANYTHING = "..."

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass
class Block:
    """A fenced block: its language, text and where it stands."""

    language: str
    text: str
    start: int
    stop: int


def blocks(text: str) -> list[Block]:
    return [Block(found[1], found[2], *found.span(2)) for found in _BLOCK.finditer(text)]


def run_command(line: str) -> str:
    """What ``brwsim ...`` prints, both streams."""
    name, *arguments = shlex.split(line)
    assert name == "brwsim", line
    result = CliRunner().invoke(main, arguments, prog_name="brwsim")
    assert result.exit_code == 0, f"{line}\n{result.output}"
    return result.output


def run_console(text: str) -> Iterator[tuple[str, str, str]]:
    """(command, output shown, output now) of every command of a console block."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown, run_command(command)


def run_python(text: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(text, "README.md", "exec"), {"__name__": "__main__"})
    return printed.getvalue()


def agrees(shown: str, printed: str) -> bool:
    """Whether the lines are the same, but for spaces; ``...`` stands for any lines."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == ANYTHING else re.escape(" ".join(line.split())) + "\n"
        for line in shown.splitlines()
        if line.strip()
    )
    lines = (" ".join(line.split()) for line in printed.splitlines())
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines if line)) is not None


def outputs(text: str) -> Iterator[tuple[Block, str, str]]:
    """Run all examples in order, in the current folder: (block, what it holds, what it should hold)."""
    printed = ""
    for block in blocks(text):
        if block.language == "python":
            printed = run_python(block.text)
        elif block.language == "text":
            yield block, block.text, printed
        elif block.language == "console":
            for command, shown, now in run_console(block.text):
                yield block, f"$ {command}\n{shown}", f"$ {command}\n{now}"


def test_readme_examples_print_what_they_show(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _, shown, printed in outputs(README.read_text(encoding="utf-8")):
        assert agrees(shown, printed), f"README.md shows\n{shown}\nbut it prints\n{printed}"
    figure = (tmp_path / "dirichlet.svg").read_text(encoding="utf-8")
    kept = (ROOT / "docs/figures/dirichlet.svg").read_text(encoding="utf-8")
    assert labels(figure) == labels(kept)


def labels(svg: str) -> set[str]:
    """The texts of a figure."""
    return set(re.findall(r"<text[^>]*>([^<]+)</text>", svg))


def tables(path: Path) -> list[list[list[str]]]:
    """The cells of every table of a document, without back-quotes, headers left out."""
    found: list[list[list[str]]] = []
    rows: list[list[str]] = []
    for line in [*path.read_text(encoding="utf-8").splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip().replace("`", "") for cell in line.strip("|").split("|")])
        elif rows:
            found.append(rows[2:])
            rows = []
    return found


def table_of(path: Path, first: str) -> list[list[str]]:
    return next(rows for rows in tables(path) if rows and rows[0][0] == first)


def test_readme_lists_every_law_with_its_keys():
    rows = table_of(README, next(iter(LAWS)))
    assert [row[0] for row in rows] == list(LAWS)
    for (name, cell, _), law in zip(rows, LAWS.values(), strict=True):
        parameters = inspect.signature(law).parameters
        keys = dict(re.fullmatch(r"(\w+)(?:=(.+))?", key).groups() for key in re.split(r", | or ", cell))
        assert set(keys) == set(parameters), name
        for key, default in keys.items():
            if default is not None:
                assert parse_dist(f"{name}:{key}={default}")[key] == parameters[key].default


def test_readme_lists_every_bound():
    expected = [[bound.name, bound.kind, bound.formula] for bound in BOUNDS.values()]
    assert table_of(README, next(iter(BOUNDS))) == expected


def test_readme_lists_the_exit_codes_of_the_command_line():
    rows = table_of(README, "0")
    epilog = " ".join((main.epilog or "").split())
    assert all(f"{code} {meaning}" in epilog for code, meaning in rows)
    assert len(rows) == len(re.findall(r"^ +\d+  ", main.epilog or "", re.MULTILINE))


def test_readme_grids_are_grids():
    for text, _ in table_of(README, "1..4096"):
        assert parse_grid(text).size


def test_readme_names_every_command():
    text = README.read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f"`{name}`" in text or f"brwsim {name}" in text, name


def test_file_format_names_everything_in_the_schema():
    text = (ROOT / "docs/file-format.md").read_text(encoding="utf-8")
    names = [value for key, value in vars(schema).items() if key.startswith("ATTR_")]
    names += [*schema.VARIABLES, *schema.KEY_COLUMNS, *schema.MOMENT_NAMES, schema.DIMENSION, schema.FILETYPE]
    for name in names:
        assert f"`{name}`" in text, name
    assert f"{schema.SCHEMA_VERSION[0]}.{schema.SCHEMA_VERSION[1]}" in text


def test_architecture_names_every_part():
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    for path in (ROOT / "brwsim").iterdir():
        if path.suffix == ".py" and not path.name.startswith("__"):
            assert f"`{path.name}`" in text, path.name
        elif (path / "__init__.py").exists():
            assert f"`{path.name}/`" in text, path.name


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    text = re.sub(_BLOCK, "", path.read_text(encoding="utf-8"))
    for link in _LINK.findall(text):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def rewrite() -> None:
    """Put the present outputs into README.md; those with ``...`` stay."""
    text = README.read_text(encoding="utf-8")
    folder = os.getcwd()
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        try:
            found = list(outputs(text))
        finally:
            os.chdir(folder)
    for block, shown, printed in reversed(found):
        if ANYTHING not in shown.splitlines():
            at = text.index(shown, block.start, block.stop)
            text = text[:at] + printed.rstrip() + "\n" + text[at + len(shown) :]
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    rewrite()
