"""Training files of an n-gram model: text or token ids, read as one array of tokens cut into documents."""

from __future__ import annotations

import codecs
import fnmatch
import hashlib
import json
import os
import reprlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brwsim.errors import FileError, InvalidInput

UNITS = ("byte", "char", "word", "id")
"""What a token can be: a byte, a character or a whitespace word of text in UTF-8, or an id from JSONL."""

ID_KEYS = ("generated_token_ids", "token_ids", "tokens", "ids")
"""Where a JSONL object may hold its token ids; the first of these that it has is read."""

SKIPPED_FOLDERS = ("__pycache__", "site-packages", "dist-packages")
"""Folders in a directory that are no text of its own: compiled code, and packages installed into it."""

_MAX_ID = 2**31 - 1
_TABLE = 2**22

Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Corpus:
    """Tokens of the training files.

    Attributes
    ----------
    tokens : ndarray of int32
        All documents one after another, as indices into ``vocab``.
    boundaries : ndarray of int64
        Document d is ``tokens[boundaries[d]:boundaries[d + 1]]``; the first entry is 0, the last the length.
    vocab : tuple
        The symbol of each index, those that occur: bytes and characters (of length 1) and ids in
        increasing order, words in the order in which they first occur.
    unit : {"byte", "char", "word", "id"}
        What a token is.
    """

    tokens: NDArray[np.int32]
    boundaries: NDArray[np.int64]
    vocab: tuple[Hashable, ...] = field(repr=False)
    unit: str

    def __len__(self) -> int:
        """Number of tokens."""
        return len(self.tokens)

    def digest(self) -> str:
        """SHA-256 of the tokens, the documents and the symbols: equal for equal corpora on any machine."""
        known = hashlib.sha256(repr((self.unit, self.vocab)).encode())
        known.update(self.boundaries.astype("<i8").tobytes())
        known.update(self.tokens.astype("<i4").tobytes())
        return known.hexdigest()


def read_corpus(files: Files, unit: str = "byte", pattern: str = "*", max_bytes: int | None = None) -> Corpus:
    """Read training files as tokens.

    Parameters
    ----------
    files : path or sequence of paths
        Files, or directories, of which every file below whose name matches ``pattern`` is read in the order
        of names; hidden files and folders, links to folders and :data:`SKIPPED_FOLDERS` are passed over.
    unit : {"byte", "char", "word", "id"}
        What a token is: a byte, a character or a whitespace-separated word of a text in UTF-8, where every
        file is a document; or an entry of JSONL, where every line is a document: a list of token ids, or an
        object with one under ``generated_token_ids``, ``token_ids``, ``tokens`` or ``ids`` (a list of lists
        is several documents).
    pattern : str
        Names to read in a directory, such as ``*.py``.
    max_bytes : int, optional
        Stop after that many bytes; what they cut off (a half character, word or line) is left out.

    Raises
    ------
    FileError
        If a file cannot be read, is not text (NUL bytes, or not UTF-8 where characters are asked), or holds
        a line that is no list of token ids; if no token is left.
    InvalidInput
        If ``unit``, ``files``, ``pattern`` or ``max_bytes`` is not what it should be.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
    >>> _ = path.write_text("to be or not to be")
    >>> corpus = read_corpus(path, "word")
    >>> corpus.vocab, corpus.tokens.tolist(), corpus.boundaries.tolist()
    (('to', 'be', 'or', 'not'), [0, 1, 2, 3, 0, 1], [0, 6])
    """
    if unit not in UNITS:
        raise InvalidInput(f"unit must be {', '.join(UNITS[:-1])} or {UNITS[-1]}, not {reprlib.repr(unit)}")
    if not isinstance(pattern, str):
        raise InvalidInput(f"pattern must be a text such as *.py, not {reprlib.repr(pattern)}")
    if max_bytes is not None and (type(max_bytes) is not int or max_bytes < 1):
        raise InvalidInput(f"max_bytes must be a whole number of at least 1, not {reprlib.repr(max_bytes)}")
    named = _named(files)
    words: dict[str, int] = {}
    documents = [codes for codes in _documents(named, unit, pattern, max_bytes, words) if codes.size]
    if not documents:
        limit = "" if max_bytes is None else f" in the first {max_bytes} bytes"
        raise FileError(f"{_shown(named)} holds no token{limit}; an n-gram model needs text to learn from")
    symbol: dict[str, Callable[[int], Hashable]] = {
        "byte": lambda code: bytes((code,)),
        "char": chr,
        "word": list(words).__getitem__,
        "id": int,
    }
    codes = np.concatenate(documents)
    boundaries = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    distinct, tokens = _dense(codes)
    return Corpus(tokens, boundaries, tuple(map(symbol[unit], distinct.tolist())), unit)


def _named(files: Any) -> list[Path]:
    given = [files] if isinstance(files, str | os.PathLike) else files
    if (
        not isinstance(given, Sequence)
        or not given
        or not all(isinstance(f, str | os.PathLike) for f in given)
    ):
        raise InvalidInput(f"files must be a path or a list of paths, not {reprlib.repr(files)}")
    return [Path(f) for f in given]


def _shown(named: list[Path]) -> str:
    return str(named[0]) if len(named) == 1 else f"{named[0]} (with {len(named) - 1} more)"


def _documents(
    named: list[Path], unit: str, pattern: str, max_bytes: int | None, words: dict[str, int]
) -> Iterator[Codes | NDArray[Any]]:
    """Each document as integer codes, up to ``max_bytes`` in all."""
    left = max_bytes
    for path in _paths(named, pattern):
        raw, cut = _read(path, left)
        if left is not None:
            left -= len(raw)
        if unit == "id":
            yield from _id_lists(path, raw, cut)
        else:
            yield _codes(path, raw, cut, unit, words)
        if left is not None and left <= 0:
            return


def _paths(named: list[Path], pattern: str) -> Iterator[Path]:
    for path in named:
        try:
            is_folder = path.is_dir()
        except OSError as error:
            raise FileError(f"{path} cannot be read: {error.strerror or error}") from error
        if not is_folder:
            yield path
            continue
        found = False
        for file in _walk(path):
            if fnmatch.fnmatchcase(file.name, pattern):
                found = True
                yield file
        if not found:
            raise FileError(f"{path} holds no file whose name matches {pattern!r}")


def _walk(folder: Path) -> Iterator[Path]:
    """Regular files below a folder in the order of names, found as they are asked for."""
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as error:
        raise FileError(f"{folder} cannot be read: {error.strerror or error}") from error
    for entry in entries:
        if entry.name.startswith(".") or entry.name in SKIPPED_FOLDERS:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry))
        elif entry.is_file():
            yield Path(entry)


def _read(path: Path, limit: int | None) -> tuple[bytes, bool]:
    """The first ``limit`` bytes of a file, and whether it holds more."""
    try:
        with open(path, "rb") as file:
            raw = file.read(-1 if limit is None else limit + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise FileError(f"{path} cannot be read: {reason}") from error
    return (raw, False) if limit is None or len(raw) <= limit else (raw[:limit], True)


def _codes(path: Path, raw: bytes, cut: bool, unit: str, words: dict[str, int]) -> NDArray[Any]:
    """A text as bytes, code points, or numbers of words (new words are added to ``words``)."""
    nul = raw.find(0)
    if nul >= 0:
        raise FileError(
            f"{path} has a NUL byte at offset {nul}, so it is binary (or UTF-16), not text in UTF-8; "
            "leave it out"
        )
    if unit == "byte":
        return np.frombuffer(raw, dtype=np.uint8)
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(raw, final=not cut)
    except UnicodeDecodeError as error:
        raise FileError(
            f"{path} is not text in UTF-8 (byte {error.start}: {error.reason}); convert it, "
            "leave it out, or take unit byte"
        ) from None
    if unit == "char":
        return np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
    found = text.split()
    if cut and found and not text[-1].isspace():
        found.pop()
    return np.array([words.setdefault(word, len(words)) for word in found], dtype=np.int64)


def _id_lists(path: Path, raw: bytes, cut: bool) -> Iterator[Codes]:
    """The token ids of each line of a JSONL file."""
    lines = raw.split(b"\n")
    if cut:
        lines.pop()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = "is nested too deeply" if isinstance(error, RecursionError) else f"is not JSON ({error})"
            raise FileError(
                f"{place} {reason}; give one list of token ids, or an object with one, a line"
            ) from None
        if isinstance(value, dict):
            key = next((key for key in ID_KEYS if value.get(key) is not None), None)
            if key is None:
                raise FileError(f"{place} has no token ids under {', '.join(ID_KEYS[:-1])} or {ID_KEYS[-1]}")
            place, value = f"{place}, {key}", value[key]
        yield from _id_arrays(place, value)


def _id_arrays(place: str, value: Any) -> Iterator[Codes]:
    if not isinstance(value, list):
        raise FileError(f"{place} must be a list of token ids, not {reprlib.repr(value)}")
    several = bool(value) and all(isinstance(item, list) for item in value)
    for ids in value if several else [value]:
        for item in ids:
            if type(item) is not int or not 0 <= item <= _MAX_ID:
                raise FileError(
                    f"{place} holds {reprlib.repr(item)}; a token id is a whole number from 0 to {_MAX_ID}"
                )
        yield np.array(ids, dtype=np.int64)


def _dense(codes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """The distinct codes in increasing order, and each code as an index into them."""
    if int(codes.max()) >= _TABLE:
        distinct, inverse = np.unique(codes, return_inverse=True)
        return distinct, inverse.astype(np.int32)
    occurs = np.zeros(int(codes.max()) + 1, dtype=bool)
    occurs[codes] = True
    rank = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(occurs), rank[codes]
