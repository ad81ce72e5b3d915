"""JSON and JSONL as OpenAI-compatible servers and vLLM return it.

A file is a stream of *records* (one per line, or one JSON document), a record holds *sequences* (one per
choice), a sequence *positions*, a position the top-k entries of one context. JSONL is read line by line and
only numbers are kept: 8 bytes per log-probability.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brwsim.errors import FileError
from brwsim.traces.contexts import Contexts
from brwsim.traces.rows import Entry, RowStore, UnusableError

#: Servers send this (or less) in place of -inf, which JSON cannot hold.
PLACEHOLDER = -9999.0

_EXPECTED = (
    "expected a response with choices[].logprobs, a logprobs object or a list of them; "
    "ask the server for logprobs (chat: logprobs=true, top_logprobs=20; completions: logprobs=20)"
)


@dataclass(frozen=True)
class _Sequence:
    """The positions of one choice; ``tokens`` the sampled ones where a list beside tells them."""

    place: str
    positions: list[Any]
    tokens: list[Any]
    stream: str | None = None  # chunks of one streamed choice share it


def read_responses(path: Path) -> Contexts:
    """Read the top-k log-probabilities of responses.

    Understood, each as one JSON document, in JSON arrays, or line by line: chat completions
    (``choices[].logprobs.content[].top_logprobs``, streamed chunks too), legacy completions
    (``choices[].logprobs.top_logprobs``, a dict per token or null), Responses-API output, batch lines
    (``response.body``), a choice or a logprobs object alone, lists of token dicts with numbers or vLLM's
    ``{"logprob": ..., "rank": ...}`` as values.

    Servers list the sampled token besides the k likeliest when it is not among them; it is taken off again
    (see :mod:`brwsim.traces.rows`).

    Raises
    ------
    FileError
        Names the file, the line and the position, and says what to do.
    """
    store = RowStore(str(path))
    streams: dict[str, int] = {}
    traces = skipped = 0
    for line, record in _records(path):
        where = f"line {line}" if line else ""
        try:
            for sequence in _sequences(record, where):
                if sequence is None:
                    skipped += 1
                    continue
                trace = streams.get(sequence.stream, traces) if sequence.stream else traces
                if trace == traces:
                    traces += 1
                    if sequence.stream:
                        streams[sequence.stream] = trace
                _add_positions(store, sequence, trace)
        except UnusableError as error:
            raise FileError(f"{path}: {error}") from None
    return store.contexts(skipped)


def _records(path: Path) -> Iterator[tuple[int | None, Any]]:
    """(line number, value) of each line of JSONL; (None, value) of one JSON document."""
    try:
        with path.open(encoding="utf-8-sig") as stream:
            found = 0
            for number, line in enumerate(stream, 1):
                text = line.strip().removeprefix("data:").strip()  # server-sent events, saved as they came
                if not text or text == "[DONE]":
                    continue
                try:
                    value = json.loads(text)
                except json.JSONDecodeError as error:
                    if found:
                        raise FileError(
                            f"{path}: line {number} is not JSON: {error.msg}; remove or mend it"
                        ) from None
                    break  # perhaps one document over several lines
                found += 1
                yield number, value
            else:
                if not found:
                    raise FileError(f"{path} is empty; it should hold responses with logprobs")
                return
            stream.seek(0)
            yield None, json.load(stream)
    except json.JSONDecodeError as error:
        raise FileError(
            f"{path} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}; "
            "give a JSON or JSONL file of responses, or a .npy, .npz or .h5 array"
        ) from None
    except UnicodeDecodeError:
        raise FileError(
            f"{path} is not text in UTF-8; give JSON, JSONL, or a .npy, .npz or .h5 array"
        ) from None
    except RecursionError:
        raise FileError(f"{path} is nested too deeply to be a response") from None
    except ValueError as error:  # json refuses integers of thousands of digits
        raise FileError(f"{path} is not usable JSON: {error}") from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error}") from error


def _sequences(record: Any, where: str) -> Iterator[_Sequence | None]:
    """The choices of a record, whatever wraps them; None for a failed request."""
    if isinstance(record, list):
        if _is_position(next((item for item in record if item is not None), None)):
            yield _Sequence(where, record, [])
            return
        for i, item in enumerate(record):
            yield from _sequences(item, _join(where, f"item {i}"))
        return
    if not isinstance(record, dict):
        raise UnusableError(_join(where, f"holds no logprobs but {_describe(record)}: {_EXPECTED}"))
    if "choices" in record:
        yield from _choices(record, where)
    elif isinstance(record.get("response"), dict):
        yield from _sequences(record["response"], where)
    elif isinstance(record.get("body"), dict):
        yield from _sequences(record["body"], where)
    elif record.get("error"):
        yield None
    elif isinstance(record.get("output"), list):
        yield from _output(record["output"], where)
    elif record.get("logprobs") is not None:
        yield _logprobs(record["logprobs"], where)
    elif isinstance(record.get("prompt_logprobs"), list):
        yield _logprobs(record["prompt_logprobs"], where)
    elif "top_logprobs" in record or isinstance(record.get("content") or record.get("refusal"), list):
        yield _logprobs(record, where)
    else:
        raise UnusableError(_join(where, f"holds no logprobs but {_describe(record)}: {_EXPECTED}"))


def _choices(response: dict[str, Any], where: str) -> Iterator[_Sequence]:
    choices = response["choices"]
    if not isinstance(choices, list):
        raise UnusableError(_join(where, f"'choices' is {_describe(choices)}, not a list"))
    streamed = str(response.get("object", "")).endswith(".chunk")
    for i, choice in enumerate(choices):
        place = _join(where, f"choice {i}")
        logprobs = choice.get("logprobs") if isinstance(choice, dict) else None
        if logprobs is None:
            if streamed:  # the first and the last chunk of a stream carry none
                continue
            raise UnusableError(_join(place, f"holds no logprobs: {_EXPECTED}"))
        sequence = _logprobs(logprobs, place)
        stream = f"{response.get('id')}/{choice.get('index', i)}" if streamed else None
        yield _Sequence(place, sequence.positions, sequence.tokens, stream)


def _output(items: list[Any], where: str) -> Iterator[_Sequence]:
    """Sequences of the Responses API: output[].content[].logprobs."""
    found = False
    for i, item in enumerate(items):
        content = item.get("content") if isinstance(item, dict) else None
        for part in content if isinstance(content, list) else []:
            if isinstance(part, dict) and part.get("logprobs"):
                found = True
                yield _logprobs(part["logprobs"], _join(where, f"output {i}"))
    if not found:
        raise UnusableError(_join(where, f"holds no logprobs: {_EXPECTED}"))


def _logprobs(value: Any, place: str) -> _Sequence:
    """The positions of a logprobs object: chat's, the legacy one, or a plain list of positions."""
    if isinstance(value, list):
        return _Sequence(place, value, [])
    if isinstance(value, dict):
        if "top_logprobs" in value:
            positions, tokens = value["top_logprobs"], value.get("tokens")
            if isinstance(positions, list):
                return _Sequence(place, positions, tokens if isinstance(tokens, list) else [])
            raise UnusableError(_join(place, "'top_logprobs' is null: ask for the k likeliest (logprobs=20)"))
        if "content" in value or "refusal" in value:
            positions = value.get("content") or value.get("refusal") or []
            if isinstance(positions, list):
                return _Sequence(place, positions, [])
    raise UnusableError(_join(place, f"'logprobs' is {_describe(value)}: {_EXPECTED}"))


def _add_positions(store: RowStore, sequence: _Sequence, trace: int) -> None:
    tokens = sequence.tokens
    store.open(sequence.place, trace)
    for i, position in enumerate(sequence.positions):
        if position is None:  # the first token of an echoed prompt has no distribution
            continue
        try:
            entries, sampled, in_order = _entries(position)
            if sampled is None and i < len(tokens) and isinstance(tokens[i], str):
                sampled = tokens[i]
            store.add(i, entries, sampled, in_order)
        except UnusableError as error:
            raise UnusableError(_join(sequence.place, f"position {i}: {error}")) from None


def _entries(position: Any) -> tuple[list[Entry], str | None, bool]:
    """Entries of a position, the sampled token where it is named, and whether their order tells something."""
    if isinstance(position, dict) and "top_logprobs" in position:
        listed = position["top_logprobs"]
        if not isinstance(listed, list) or not listed:
            raise UnusableError("lists no alternatives: ask the server for the k likeliest (top_logprobs=20)")
        sampled = position.get("token")
        return [_entry(item) for item in listed], sampled if isinstance(sampled, str) else None, True
    if isinstance(position, dict) and position:
        return [_valued(token, value) for token, value in position.items()], None, False
    raise UnusableError(f"is {_describe(position)}, not a dict of token to logprob")


def _entry(item: Any) -> Entry:
    if not isinstance(item, dict) or "logprob" not in item:
        raise UnusableError(f"top_logprobs holds {_describe(item)}, not {{token, logprob}}")
    token = item.get("token")
    return _valued(token if isinstance(token, str) else "", item)


def _valued(token: str, value: Any) -> Entry:
    """(token, logprob, rank) from a number or from vLLM's {"logprob", "rank"}."""
    rank = None
    if isinstance(value, dict):
        rank, value = value.get("rank"), value.get("logprob")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UnusableError(f"the logprob of {token!r} is {_describe(value)}, not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    if math.isnan(number):
        raise UnusableError(f"the logprob of {token!r} is NaN: remove the response, or ask for it again")
    return token, -math.inf if number <= PLACEHOLDER else number, rank if _whole(rank) else None


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_position(value: Any) -> bool:
    """Whether a list that starts with ``value`` is a sequence of positions (and not of records)."""
    if not isinstance(value, dict) or not value:
        return False
    if isinstance(value.get("token"), str) and "top_logprobs" in value:
        return True
    return all(_is_number(v.get("logprob") if isinstance(v, dict) else v) for v in value.values())


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _describe(value: Any) -> str:
    """A few words for a JSON value in a message."""
    if isinstance(value, dict):
        keys = ", ".join(list(value)[:5])
        return f"an object with the keys {keys}" if keys else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, str):
        return f"the text {value[:20]!r}"
    return json.dumps(value)[:20]


def _join(where: str, what: str) -> str:
    return f"{where}, {what}" if where and not what.startswith("holds") else f"{where} {what}".strip()
