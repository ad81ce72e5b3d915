"""Readers of real model output, and the entropy bounds from the top k."""

from __future__ import annotations

import itertools
import json
import math
import os
import tracemalloc
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from brwsim.errors import FileError, InvalidInput
from brwsim.traces.contexts import Contexts
from brwsim.traces.entropy import entropy_bounds, tail_of
from brwsim.traces.readers import read_contexts

REAL = Path(os.environ.get("BRWSIM_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))

PROBS = [[0.5, 0.25, 0.125], [0.9, 0.05, 0.01], [0.4, 0.3, 0.2]]


def real(name: str) -> Path:
    if not (REAL / name).exists():
        pytest.skip(f"{name} is not here")
    return REAL / name


def entry(token: str, p: float) -> dict[str, Any]:
    return {"token": token, "logprob": math.log(p) if p > 0 else -9999.0, "bytes": None}


def chat_position(probs: list[float], sampled: int = 0) -> dict[str, Any]:
    listed = [entry(f"t{i}", p) for i, p in enumerate(probs)]
    return {**listed[sampled], "top_logprobs": listed}


def chat(probs: list[list[float]] = PROBS, **extra: Any) -> dict[str, Any]:
    content = [chat_position(row) for row in probs]
    return {"object": "chat.completion", "choices": [{"index": 0, "logprobs": {"content": content}}], **extra}


def legacy_logprobs(probs: list[list[float]], sampled: int = 0) -> dict[str, Any]:
    return {
        "tokens": [f"t{sampled}" for _ in probs],
        "token_logprobs": [math.log(row[sampled]) for row in probs],
        "top_logprobs": [{f"t{i}": math.log(p) for i, p in enumerate(row)} for row in probs],
    }


def legacy(probs: list[list[float]] = PROBS, sampled: int = 0) -> dict[str, Any]:
    return {"object": "text_completion", "choices": [{"logprobs": legacy_logprobs(probs, sampled)}]}


def write(path: Path, *values: Any, indent: int | None = None) -> Path:
    path.write_text("\n".join(json.dumps(value, indent=indent) for value in values), encoding="utf-8")
    return path


def read(path: Path) -> tuple[np.ndarray, list[int]]:
    contexts = read_contexts(path)
    assert isinstance(contexts, Contexts)
    assert not contexts.logprobs.flags.writeable
    assert contexts.logprobs.dtype == np.float64
    return np.exp(contexts.logprobs), contexts.trace.tolist()


def message(path: Path, error: type[Exception] = FileError) -> str:
    with pytest.raises(error) as caught:
        read_contexts(path)
    text = str(caught.value)
    assert str(path) in text
    assert "\n" not in text
    return text


# --- every form that is understood --------------------------------------------------------------------------

VLLM = [None, *({str(i): {"logprob": math.log(p), "rank": i + 1} for i, p in enumerate(r)} for r in PROBS)]
NUMERIC = [{i: math.log(p) for i, p in enumerate(row)} for row in PROBS]

ONE_RESPONSE = {
    "chat": chat(),
    "legacy": legacy(),
    "choice alone": chat()["choices"][0],
    "chat logprobs alone": chat()["choices"][0]["logprobs"],
    "legacy logprobs alone": legacy_logprobs(PROBS),
    "refusal": {"logprobs": {"content": None, "refusal": [chat_position(row) for row in PROBS]}},
    "batch line": {"custom_id": "a", "error": None, "response": {"status_code": 200, "body": chat()}},
    "list of token dicts": NUMERIC,
    "list of positions": [chat_position(row) for row in PROBS],
    "vllm values": {"choices": [{"logprobs": {"top_logprobs": VLLM}}]},
    "vllm prompt": {"prompt_logprobs": VLLM},
    "responses api": {
        "output": [
            {"type": "reasoning"},
            {"content": [{"text": "x", "logprobs": [chat_position(row) for row in PROBS]}]},
        ]
    },
    "shuffled": {"top_logprobs": [dict(reversed(row.items())) for row in NUMERIC]},
}


@pytest.mark.parametrize("form", ONE_RESPONSE)
@pytest.mark.parametrize("layout", ["line", "document", "array", "lines", "bom", "events"])
def test_every_form_in_every_layout(tmp_path: Path, form: str, layout: str) -> None:
    value, path = ONE_RESPONSE[form], tmp_path / "x.json"
    times = 2 if layout in {"array", "lines", "events"} else 1
    if layout == "array":
        write(path, [value, value])
    elif layout == "lines":
        write(path, *[value] * times)
    elif layout == "events":
        path.write_text(f"data: {json.dumps(value)}\n\n" * times + "data: [DONE]\n")
    elif layout == "bom":
        path.write_bytes(b"\xef\xbb\xbf" + json.dumps(value).encode() + b"\r\n")
    else:
        write(path, value, indent=2 if layout == "document" else None)
    probs, trace = read(path)
    np.testing.assert_allclose(probs, PROBS * times, rtol=1e-14)
    assert trace == [0, 0, 0, 1, 1, 1][: 3 * times]


def test_choices_and_lines_are_responses_of_their_own(tmp_path: Path) -> None:
    two = {"choices": [chat(PROBS[:2])["choices"][0], chat(PROBS[2:])["choices"][0]]}
    assert read(write(tmp_path / "x.jsonl", two, chat(PROBS[:1])))[1] == [0, 0, 1, 2]


def test_streamed_chunks_of_a_choice_are_one_response(tmp_path: Path) -> None:
    def chunk(index: int, row: list[float] | None) -> dict[str, Any]:
        logprobs = None if row is None else {"content": [chat_position(row)]}
        choices = [{"index": index, "delta": {}, "logprobs": logprobs}]
        return {"id": "c1", "object": "chat.completion.chunk", "choices": choices}

    lines = [
        chunk(0, None),
        chunk(0, PROBS[0]),
        chunk(1, PROBS[1]),
        chunk(0, PROBS[2]),
        {**chunk(0, None), "choices": []},
    ]
    assert read(write(tmp_path / "x.jsonl", *lines))[1] == [0, 1, 0]


def test_failed_batch_requests_are_counted(tmp_path: Path) -> None:
    failed = {"custom_id": "b", "response": None, "error": {"code": "expired"}}
    refused = {"response": {"status_code": 400, "body": {"error": {"message": "no"}}}, "error": None}
    path = write(tmp_path / "x.json", [failed, chat(), refused, chat()])
    contexts = read_contexts(path)
    assert (len(contexts), contexts.skipped, contexts.responses) == (6, 2, 2)


def test_placeholders_and_tiny_excesses(tmp_path: Path) -> None:
    content = [chat_position([1.0, 0.0, 0.0]), chat_position([0.75, 0.25, 0.0])]
    content[0]["top_logprobs"][0]["logprob"] = 1e-7  # float32 rounding
    contexts = read_contexts(write(tmp_path / "x.json", {"content": content}))
    assert contexts.logprobs.tolist()[0] == [0.0, -math.inf]  # the column without any value is gone
    assert contexts.full


# --- the sampled token among the k -------------------------------------------------------------------------


def test_sampled_token_beyond_the_top_k_is_cut(tmp_path: Path) -> None:
    extra = legacy([[0.4, 0.3, 0.2, 0.001]], sampled=3)
    probs, _ = read(write(tmp_path / "x.jsonl", legacy(PROBS), extra))
    np.testing.assert_allclose(probs, [*PROBS, [0.4, 0.3, 0.2]])


def test_extra_by_rank_is_cut(tmp_path: Path) -> None:
    rows = [
        {"1": {"logprob": math.log(0.5), "rank": 1}, "2": {"logprob": math.log(0.2), "rank": 2}},
        {
            "9": {"logprob": math.log(0.01), "rank": 3},
            **{"1": {"logprob": -0.7, "rank": 1}, "2": {"logprob": -2, "rank": 2}},
        },
        {
            "9": {"logprob": math.log(0.01), "rank": 30},
            **{"1": {"logprob": -0.7, "rank": 1}, "2": {"logprob": -2, "rank": 2}},
        },
    ]
    contexts = read_contexts(write(tmp_path / "x.json", rows))
    assert contexts.k == 2
    np.testing.assert_allclose(contexts.logprobs[1:], [[-0.7, -2], [-0.7, -2]])


def test_sampled_token_least_everywhere_proves_nothing(tmp_path: Path) -> None:
    probs, _ = read(write(tmp_path / "x.json", legacy([[0.4, 0.3, 0.01], [0.5, 0.2, 0.001]], sampled=2)))
    np.testing.assert_allclose(probs, [[0.4, 0.3], [0.5, 0.2]])


def test_sampled_first_in_a_chat_list_may_have_displaced_the_kth(tmp_path: Path) -> None:
    """A vLLM server cuts [sampled, top 1, ..., top k] to k entries: the k-th is then missing."""
    content = [chat_position(row) for row in PROBS]
    low = [entry("t9", 0.001), entry("t0", 0.5), entry("t1", 0.2)]
    content.append({**low[0], "top_logprobs": low})
    contexts = read_contexts(write(tmp_path / "x.json", {"content": content}))
    np.testing.assert_allclose(np.exp(contexts.logprobs[3]), [0.5, 0.2, 0.0])
    # the unseen may weigh up to 0.2, not 0.001
    assert tail_of(contexts.logprobs).cap[3] == pytest.approx(0.2)


def test_kth_token_sampled_in_an_ordered_list_is_kept(tmp_path: Path) -> None:
    content = [chat_position(row, sampled=2) for row in PROBS[:1]] + [chat_position(row) for row in PROBS[1:]]
    np.testing.assert_allclose(read(write(tmp_path / "x.json", {"content": content}))[0], PROBS)
    tie = {"content": [chat_position([0.5, 0.5])]}  # the first is among the least, but nothing is above it
    np.testing.assert_allclose(read(write(tmp_path / "x.json", tie))[0], [[0.5, 0.5]])


def test_one_entry_that_may_not_be_the_likeliest(tmp_path: Path) -> None:
    assert "top_logprobs=20" in message(write(tmp_path / "x.json", legacy([[0.9], [0.2]])))
    assert read(write(tmp_path / "y.json", legacy([[0.9], [0.6]])))[0].shape == (2, 1)


# --- arrays -----------------------------------------------------------------------------------------------


def save(path: Path, values: np.ndarray, **others: np.ndarray) -> Path:
    if path.suffix == ".npy":
        np.save(path, values)
    elif path.suffix == ".npz":
        np.savez(path, logprobs=values, **others)
    else:
        with h5py.File(path, "w") as file:
            file["group/logprobs"] = values
            for name, other in others.items():
                file[name] = other
    return path


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".h5", ".hdf5"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4"])
def test_arrays(tmp_path: Path, suffix: str, dtype: str) -> None:
    probs, trace = read(save(tmp_path / f"x{suffix}", np.log(PROBS)[:, ::-1].astype(dtype)))
    np.testing.assert_allclose(probs, PROBS, rtol=2e-3)
    assert trace == [0, 0, 0]


def test_leading_axes_are_contexts(tmp_path: Path) -> None:
    values = np.log(np.broadcast_to(PROBS[0], (2, 4, 3, 3)))
    contexts = read_contexts(save(tmp_path / "x.npy", values))
    assert contexts.logprobs.shape == (24, 3)
    assert contexts.trace.tolist() == sorted([*range(8)] * 3)
    assert read_contexts(save(tmp_path / "y.npy", np.log(PROBS[0]))).logprobs.shape == (1, 3)


@pytest.mark.parametrize("suffix", [".npz", ".h5"])
def test_arrays_with_trace_numbers(tmp_path: Path, suffix: str) -> None:
    path = save(tmp_path / f"x{suffix}", np.log(PROBS), trace=np.array([7, 7, 3]), other=np.zeros(2))
    assert read(path)[1] == [1, 1, 0]


def test_full_rows_and_rounding(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(50, 1000)) * 4
    logprobs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    assert read_contexts(save(tmp_path / "a.npy", logprobs.astype("f4"))).full
    bits = logprobs.astype("f4").view("u4")
    bfloat16 = (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) << 16).astype("u4").view("f4")
    contexts = read_contexts(save(tmp_path / "b.npy", bfloat16))
    exact = -(np.exp(logprobs) * logprobs).sum(axis=1)
    bounds = entropy_bounds(contexts.logprobs, vocab_size=1000)
    assert not contexts.full
    np.testing.assert_allclose(bounds.h_lower, exact, rtol=0.01)
    np.testing.assert_allclose(bounds.h_upper, exact, rtol=0.01)


def test_digest_is_of_the_pool_not_of_its_file(tmp_path: Path) -> None:
    a = read_contexts(write(tmp_path / "a.json", chat()))
    b = read_contexts(write(tmp_path / "b.json", legacy(), indent=3))
    c = read_contexts(write(tmp_path / "c.json", chat(PROBS[:2])))
    assert a.digest() == b.digest() != c.digest()


# --- bad input ----------------------------------------------------------------------------------------------


def spoilt(value: Any, k: int = 3) -> dict[str, Any]:
    """A chat response whose second position has ``value`` as its last log-probability."""
    response = chat()
    response["choices"][0]["logprobs"]["content"][1]["top_logprobs"][k - 1]["logprob"] = value
    return response


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            0.5,
            "line 2, choice 0, position 1: the logprob of 't2' is 0.5; a log-probability is never positive",
        ),
        (10**400, "never positive"),
        (math.inf, "never positive"),
        (math.nan, "line 2, choice 0, position 1: the logprob of 't2' is NaN"),
        (None, "the logprob of 't2' is null, not a number"),
        ("-1", "not a number"),
        (True, "not a number"),
        (-0.01, "the listed probabilities sum to 1.94"),
    ],
)
def test_bad_logprobs_are_placed(tmp_path: Path, value: Any, words: str) -> None:
    assert words in message(write(tmp_path / "x.jsonl", chat(), spoilt(value)))


NO_LOGPROBS = {
    "nothing": {"id": "134", "generated_token_ids": [1, 2]},
    "null": {"choices": [{"message": {"content": "hi"}, "logprobs": None}]},
    "a number": 3,
    "a text": "hi",
    "no choice": {"choices": []},
    "choices": {"choices": 3},
    "empty": {"logprobs": {"content": []}},
    "top_logprobs null": legacy() | {"choices": [{"logprobs": {"tokens": ["a"], "top_logprobs": None}}]},
    "no alternatives": {"content": [{"token": "a", "logprob": -1.0, "top_logprobs": []}]},
    "message": {"role": "assistant", "content": [{"type": "text", "text": "hi"}]},
    "responses api": {"output": [{"content": [{"text": "hi", "logprobs": []}]}]},
    "zeros": {"content": [chat_position([0.0, 0.0])]},
    "null positions": {"logprobs": {"top_logprobs": [None, None]}},
    "strange position": {"logprobs": {"top_logprobs": [3]}},
    "strange entry": {"content": [{"token": "a", "logprob": -1.0, "top_logprobs": [-1.0]}]},
    "strange logprobs": {"logprobs": 3},
    "empty list": [],
}


@pytest.mark.parametrize("case", NO_LOGPROBS)
def test_lack_of_logprobs(tmp_path: Path, case: str) -> None:
    assert "prob" in message(write(tmp_path / "x.json", NO_LOGPROBS[case]))


def test_lack_of_logprobs_names_the_keys_and_the_way(tmp_path: Path) -> None:
    text = message(write(tmp_path / "x.jsonl", chat(), NO_LOGPROBS["nothing"]))
    assert "line 2 holds no logprobs but an object with the keys id, generated_token_ids" in text
    assert "top_logprobs=20" in text


def test_mixed_k(tmp_path: Path) -> None:
    text = message(write(tmp_path / "x.jsonl", chat(), chat([[0.5, 0.2]])))
    assert "line 1, choice 0, position 0 lists 3 tokens, but line 2, choice 0, position 0 lists 2" in text
    assert "mixes k" in text
    wide = legacy([[0.4, 0.3, 0.1, 0.01, 0.001]], sampled=4)
    assert "mixes k" in message(write(tmp_path / "y.jsonl", chat(), wide))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"  \n\n", "is empty"),
        (b"hello\n", "is not JSON"),
        (b'{"choices": [', "is not JSON"),
        (b"\x80\x02\xff", "not text in UTF-8"),
        (b"[" * 200_000, "nested too deeply"),
        (b"[" + b"1" * 5000 + b"]", "not usable JSON"),
        (json.dumps(chat()).encode() + b'\n{"choices"', "line 2 is not JSON"),
    ],
)
def test_not_json(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    assert words in message(path)


def test_paths(tmp_path: Path) -> None:
    assert "is a directory" in message(tmp_path)
    assert "no such file" in message(tmp_path / "missing.npy")
    with pytest.raises(FileError):
        read_contexts("a\0b")


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".h5"])
@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            np.array([[-0.1, -3.0], [-0.5, 0.5]]),
            "context 1, entry 1 is 0.5, but a log-probability is never positive",
        ),
        (np.array([[-0.1, np.nan]]), "context 0, entry 1 is NaN"),
        (np.full((2, 3, 4), np.nan), "context (0, 0), entry 0 is NaN"),
        (np.log([[0.5, 0.3], [0.9, 0.3]]), "the probabilities of context 1 sum to 1.2"),
        (np.array([[-np.inf, -np.inf]]), "sum to 0"),
        (np.zeros((0, 5)), "is empty"),
        (np.array(-1.0), "shape ()"),
        (np.array([[1, 2]]), "not floats"),
        (np.array([["a"]], dtype="S1"), "not floats"),
    ],
)
def test_bad_arrays(tmp_path: Path, suffix: str, values: np.ndarray, words: str) -> None:
    assert words in message(save(tmp_path / f"x{suffix}", values))


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".h5"])
def test_array_files_that_are_none(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(b"")
    assert "is empty" in message(path)
    path.write_bytes(b"not an array at all, but long enough to look into")
    assert f"not a readable {suffix} file" in message(path)
    save(path, np.log(np.full((100, 50), 0.01)))
    path.write_bytes(path.read_bytes()[:-3000])
    assert f"not a readable {suffix} file" in message(path)


def test_choosing_among_arrays(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, a=np.log(PROBS), b=np.log(PROBS))
    assert "2 arrays (a, b)" in message(path)
    np.savez(path)
    assert "no array" in message(path)
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object), allow_pickle=True)
    assert "not a readable" in message(tmp_path / "o.npy")
    np.savez(path, logprobs=np.log(PROBS), trace=np.zeros(2, dtype=int))
    assert "'trace' has type int64 and shape (2,)" in message(path)


def test_jsonl_is_streamed(tmp_path: Path) -> None:
    """Memory follows the numbers kept (8 bytes each and a few copies), not the text."""
    path = tmp_path / "x.jsonl"
    line = json.dumps(chat([[0.04 - i * 1e-4 for i in range(20)]] * 50)) + "\n"
    with path.open("w") as stream:
        for _ in range(60):
            stream.write(line)
    tracemalloc.start()
    contexts = read_contexts(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert contexts.logprobs.shape == (3000, 20)
    assert peak < 6 * contexts.logprobs.nbytes + 12 * len(line) < 1.5 * path.stat().st_size


# --- entropy bounds ----------------------------------------------------------------------------------------


def moments(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    logs = np.log(np.where(p > 0, p, 1.0))
    return -(p * logs).sum(axis=-1), (p * logs**2).sum(axis=-1)


@pytest.mark.parametrize(
    ("listed", "unseen"),
    [
        ([0.4], 2),  # k = 1 with the k-th beyond 1/e, where p ln^2 p is convex
        ([0.45], 3),
        ([0.38], 4),
        ([0.6], 3),
        ([0.95], 4),
        ([0.36, 0.36], 3),
        ([0.4, 0.39], 2),
        ([0.3, 0.2], 4),
        ([0.5, 0.2, 0.15], 3),
        ([0.3, 0.17, 0.17], 3),
    ],
)
def test_extremes_by_brute_force(listed: list[float], unseen: int) -> None:
    """A fine grid over all allowed tails finds nothing beyond the bounds, and comes close to both."""
    missing, cap = 1 - sum(listed), listed[-1]
    steps = {2: 4000, 3: 240, 4: 60}[unseen]
    parts = [
        (*counts, steps - sum(counts))
        for counts in itertools.product(range(steps + 1), repeat=unseen - 1)
        if sum(counts) <= steps
    ]
    tails = np.array(parts) * (missing / steps)
    tails = tails[(tails <= cap + 1e-12).all(axis=1)]
    h, s = moments(np.hstack([np.tile(listed, (len(tails), 1)), tails]))
    bounds = entropy_bounds(np.log([listed]), vocab_size=len(listed) + unseen)
    near = 0.02
    assert h.min() - near < bounds.h_lower[0] <= h.min() + 1e-12
    assert s.min() - 3 * near < bounds.s_lower[0] <= s.min() + 1e-12
    assert h.max() - 1e-12 <= bounds.h_upper[0] < h.max() + near
    assert s.max() - 1e-12 <= bounds.s_upper[0] < s.max() + 3 * near


def test_truth_lies_between() -> None:
    """Cut full distributions at every k: their own entropy is within the bounds, which tighten with k."""
    rng = np.random.default_rng(5)
    full = -np.sort(-rng.dirichlet(np.full(60, 0.15), size=200), axis=1)
    h, s = moments(full)
    last = None
    for k in (1, 2, 5, 20, 59, 60):
        bounds = entropy_bounds(np.log(np.maximum(full[:, :k], 1e-300)), vocab_size=60)
        for value, lower, upper in ((h, bounds.h_lower, bounds.h_upper), (s, bounds.s_lower, bounds.s_upper)):
            assert (
                lower <= value + 1e-4
            ).all()  # a missing mass below 1e-6 counts as none in the lower value
            assert (value <= upper + 1e-9).all()
        if last is not None:
            assert (bounds.h_lower >= last.h_lower - 1e-4).all()
            assert (bounds.s_upper <= last.s_upper + 1e-9).all()
        last = bounds
    np.testing.assert_allclose(last.h_lower, h, atol=1e-9)
    np.testing.assert_allclose(last.s_upper, s, atol=1e-9)


def test_unknown_vocabulary() -> None:
    bounds = entropy_bounds(np.log([[0.5, 0.25], [0.75, 0.25]]))
    assert bounds.h_upper.tolist() == [math.inf, pytest.approx(0.5623351446)]
    assert bounds.s_upper[0] == math.inf
    assert bounds.h_lower[0] == pytest.approx(1.5 * math.log(2))


def test_placeholders_count_as_unseen() -> None:
    with np.errstate(divide="ignore"):
        cut = entropy_bounds(np.log([[0.5, 0.25, 0.0]]), vocab_size=6)
    short = entropy_bounds(np.log([[0.5, 0.25]]), vocab_size=6)
    assert cut.h_upper == pytest.approx(short.h_upper)
    assert cut.s_lower == pytest.approx(short.s_lower)


def test_infeasible_vocabularies() -> None:
    rows = np.log([[0.75, 0.25], [0.5, 0.125]])
    with pytest.raises(InvalidInput, match=r"x: context 1 misses a mass of 0\.375.*must be at least 5$"):
        entropy_bounds(rows, vocab_size=3, source="x")
    entropy_bounds(rows, vocab_size=5)
    with pytest.raises(InvalidInput, match="context 0 lists 2 tokens, more than the vocabulary size 1"):
        entropy_bounds(rows, vocab_size=1)
    for bad in (0, -3, 2.5, True, "7"):
        with pytest.raises(InvalidInput, match="is not a positive whole number"):
            entropy_bounds(rows, vocab_size=bad)  # type: ignore[arg-type]
    with pytest.raises(FileError, match=r"context 0 sum to 1\.5"):
        entropy_bounds(np.log([[0.75, 0.75]]))


def test_tiny_caps_do_not_overflow() -> None:
    bounds = entropy_bounds(np.array([[math.log(0.5), -740.0]]), vocab_size=None)
    assert bounds.h_lower[0] == pytest.approx(0.5 * math.log(2) + 0.5 * 740, rel=1e-3)


# --- real files, where they are -----------------------------------------------------------------------------


def test_real_legacy_completion() -> None:
    contexts = read_contexts(real("completion-legacy-logprobs.json"))
    assert (len(contexts), contexts.k, contexts.responses, contexts.full) == (16, 20, 1, False)
    bounds = entropy_bounds(contexts.logprobs, vocab_size=100_277)
    assert bounds.h_lower.mean() == pytest.approx(1.59105, abs=1e-5)
    assert (bounds.h_lower <= bounds.h_upper).all()


def test_real_token_ids_have_no_logprobs() -> None:
    assert "line 1 holds no logprobs" in message(real("gsm8k-llama31-8b.jsonl"))
