"""The parsers of P grids and of ``NAME:key=value,...``."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brwsim.errors import InvalidInput
from brwsim.parse import MAX_P, parse_dist, parse_grid

# ---------------------------------------------------------------- grids


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("5", [5]),
        ("1..4", [1, 2, 3, 4]),
        ("7..7", [7]),
        ("16,64,256", [16, 64, 256]),
        ("256,16,64,16", [16, 64, 256]),
        ("1..200:64", [1, 65, 129, 193]),
        ("1..193:64", [1, 65, 129, 193]),
        ("1..10:99999999999999999999999999999999", [1]),
        ("4..6,1,8..12:2", [1, 4, 5, 6, 8, 10, 12]),
        (" 1 .. 3 , 9 ", [1, 2, 3, 9]),
        ("1..1024@6", [1, 4, 16, 64, 256, 1024]),
        ("3..5@64", [3, 4, 5]),
        ("9..9@2", [9]),
        ("0016", [16]),
        (str(MAX_P), [MAX_P]),
    ],
)
def test_grid_texts(text: str, values: list[int]) -> None:
    grid = parse_grid(text)
    assert grid.dtype == np.int64
    assert grid.tolist() == values


@given(low=st.integers(1, 5000), span=st.integers(1, 10**6), count=st.integers(2, 300))
def test_log_spaced_grid_has_its_ends_and_its_count(low: int, span: int, count: int) -> None:
    high = low + span
    grid = parse_grid(f"{low}..{high}@{count}")
    assert (grid[0], grid[-1]) == (low, high)
    assert np.all(np.diff(grid) > 0)
    wanted = min(count, span + 1)
    assert 0.95 * wanted - 1 <= grid.size <= wanted
    # In equal ratios up to rounding: gaps grow.
    assert np.all(np.diff(grid, 2) >= -2)


def test_log_spaced_grid_of_the_usual_size() -> None:
    grid = parse_grid("1..4096@64")
    assert grid.size == 64
    assert grid[:4].tolist() == [1, 2, 3, 4]


@given(
    st.lists(st.tuples(st.integers(1, 300), st.integers(0, 300), st.integers(1, 50)), min_size=1, max_size=6)
)
def test_mixtures_are_unions(pieces: list[tuple[int, int, int]]) -> None:
    text = ",".join(f"{low}..{low + span}:{step}" for low, span, step in pieces)
    expected = set(
        itertools.chain.from_iterable(range(low, low + span + 1, step) for low, span, step in pieces)
    )
    assert parse_grid(text).tolist() == sorted(expected)


@pytest.mark.parametrize(
    "grid",
    [
        [3, 1, 2, 3],
        (1, 2, 3),
        {1, 2, 3},
        range(1, 4),
        range(3, 0, -1),
        np.array([3, 2, 1, 1], dtype=np.uint8),
        np.arange(1, 4, dtype=np.int32),
        (x for x in (1, 2, 3)),
        [np.int64(1), np.uint16(2), 3],
    ],
)
def test_numbers_are_accepted_too(grid: Any) -> None:
    values = parse_grid(grid)
    assert values.dtype == np.int64
    assert values.tolist() == [1, 2, 3]


def test_one_number() -> None:
    assert parse_grid(64).tolist() == [64]
    assert parse_grid(np.int32(64)).tolist() == [64]  # type: ignore[call-overload, arg-type, unused-ignore]


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ("", r"^the P grid is empty; write 16,64,256 or 1\.\.4096"),
        ("  ", "is empty"),
        ("1,,2", "empty item between commas"),
        ("1,2,", "empty item between commas"),
        ("4096..1", r"^the P grid range '4096\.\.1' is reversed; write 1\.\.4096$"),
        ("0", r"^P counts the root, so it is at least 1; the grid holds 0$"),
        ("0..5", "at least 1"),
        ("-3", r"^the P grid item '-3' is not made of positive whole numbers"),
        ("1..-3", "not made of positive whole numbers"),
        ("1.5", "not made of positive whole numbers"),
        ("1e3", "not made of positive whole numbers"),
        ("abc", "not made of positive whole numbers"),
        ("1...5", "not made of positive whole numbers"),
        ("1..", "not made of positive whole numbers"),
        ("5:2", "not made of positive whole numbers"),
        ("1..9:2:2", "not made of positive whole numbers"),
        ("\u0661..5", "not made of positive whole numbers"),
        ("1..10:0", r"^the P grid range '1\.\.10:0' has step 0; give a step of at least 1$"),
        ("1..10@1", r"asks for 1 values; @ needs at least 2$"),
        ("1..10@0", "asks for 0 values"),
        ("1..10000001", r"^P may be at most 10000000; the grid holds 10000001$"),
        ("1..1000000000000000000000@8", "P may be at most 10000000"),
        ("9" * 6000, "P may be at most 10000000"),
        ("1.." + "9" * 6000, "P may be at most 10000000"),
        ([], r"^the P grid is empty"),
        (range(0), "is empty"),
        (np.array([], dtype=np.int64), "is empty"),
        (0, "at least 1"),
        (-5, "at least 1; the grid holds -5"),
        ([1, 0], "at least 1"),
        (range(0, 5), "at least 1"),
        (range(1, 10**15), "P may be at most 10000000"),
        (range(10**15, 0, -1), "P may be at most 10000000"),
        ([10**5000], "the grid holds one of more than 20 digits"),
        ([-(10**5000)], "at least 1"),
        ([10**30], "P may be at most 10000000"),
        (np.array([2**63 + 1], dtype=np.uint64), "P may be at most 10000000"),
        (2.0, r"^the P grid must hold whole numbers, not 2\.0$"),
        (None, "whole numbers, not None"),
        (b"5", "whole numbers, not b'5'"),
        (True, "whole numbers, not True"),
        ([1, "2"], "whole numbers, not '2'"),
        (np.array([1.0, 2.0]), "whole numbers, not float64 values such as 1.0"),
        (np.array([True]), "whole numbers, not bool values"),
        (np.array([[1, 2], [3, 4]]), "one-dimensional"),
    ],
)
def test_bad_grids_are_refused_in_one_sentence(grid: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        parse_grid(grid)
    assert "\n" not in str(caught.value)
    assert not str(caught.value).endswith(".")
    assert len(str(caught.value)) < 250


def test_absurd_grids_are_refused_or_read_quickly() -> None:
    start = time.perf_counter()
    with pytest.raises(InvalidInput):
        parse_grid("1..999999999999,5")
    assert parse_grid(",".join([f"1..{MAX_P}:1000"] * 300)).size == MAX_P // 1000
    assert time.perf_counter() - start < 2


@given(st.text(max_size=30) | st.text(alphabet="0123456789.,:@- ", max_size=30))
def test_any_text_is_a_grid_or_an_error(text: str) -> None:
    try:
        grid = parse_grid(text)
    except InvalidInput:
        return
    assert grid.size
    assert grid[0] >= 1
    assert grid[-1] <= MAX_P
    assert np.all(np.diff(grid) > 0)


# ---------------------------------------------------------------- laws


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("dirichlet", {"name": "dirichlet"}),
        (" uniform ", {"name": "uniform"}),
        ("dirichlet:vocab=50,alpha=0.02", {"name": "dirichlet", "vocab": 50, "alpha": 0.02}),
        ("dirichlet: vocab = 50 , alpha = 2e-2", {"name": "dirichlet", "vocab": 50, "alpha": 0.02}),
        ("table:p=[0.6,0.25,0.1,0.05]", {"name": "table", "p": [0.6, 0.25, 0.1, 0.05]}),
        ("empirical:file=pool.json,mode=lower", {"name": "empirical", "file": "pool.json", "mode": "lower"}),
        ("empirical:file=/a/b:c=d.h5", {"name": "empirical", "file": "/a/b:c=d.h5"}),
        ('empirical:file="a,b].json"', {"name": "empirical", "file": "a,b].json"}),
        (
            "x:a=true,b=null,c=NaN,d=-Infinity",
            {"name": "x", "a": True, "b": None, "c": "NaN", "d": "-Infinity"},
        ),
        ('x:a="say \\"hi, you\\"",b=1', {"name": "x", "a": 'say "hi, you"', "b": 1}),
        (
            'x:a={"k":[1,{"l":"]"}]},b=[[1,2],[3]]',
            {"name": "x", "a": {"k": [1, {"l": "]"}]}, "b": [[1, 2], [3]]},
        ),
        (
            'mixture:laws=["dirichlet:vocab=50,alpha=0.02","table:p=[0.5,0.5]"],weights=[0.5,0.5]',
            {
                "name": "mixture",
                "laws": ["dirichlet:vocab=50,alpha=0.02", "table:p=[0.5,0.5]"],
                "weights": [0.5, 0.5],
            },
        ),
    ],
)
def test_dist_texts(text: str, spec: dict[str, Any]) -> None:
    assert parse_dist(text) == spec


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True), JSON_VALUES, min_size=1, max_size=4
    )
)
def test_any_json_value_survives(values: dict[str, Any]) -> None:
    values.pop("name", None)
    if not values:
        return
    text = "law:" + ",".join(f"{key}={json.dumps(value)}" for key, value in values.items())
    assert parse_dist(text) == {"name": "law", **values}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"^the law '' has no name; write NAME or NAME:key=value"),
        (":vocab=5", "has no name"),
        ("vocab=5", "has no name"),
        ("dirichlet:", r"^dirichlet: '' is not key=value; write dirichlet:key=value"),
        ("dirichlet:0.02", r"^dirichlet: '0\.02' is not key=value"),
        ("dirichlet:alpha=", "'alpha=' is not key=value"),
        ("dirichlet:=3", "'=3' is not key=value"),
        ("dirichlet:alpha=1,", "'' is not key=value"),
        ("dirichlet:alpha=1,,vocab=2", "'' is not key=value"),
        ("dirichlet:alpha=1,alpha=2", r"^dirichlet: the key alpha is given twice; give it once$"),
        ("dirichlet:name=zipf", "the key name is given twice"),
        ("table:p=[0.5,0.5", r"^table: brackets or quotes do not match in 'p=\[0\.5,0\.5'"),
        ("table:p=0.5]", "brackets or quotes do not match"),
        ('x:a="b', "brackets or quotes do not match"),
        ("table:p=[0.5;0.5]", r"^table: the value of p is not valid JSON: '\[0\.5;0\.5\]'$"),
        ("table:p=[NaN]", "not valid JSON"),
        ("table:p=" + "[" * 100000 + "]" * 100000, "not valid JSON"),
    ],
)
def test_bad_dists_are_refused_in_one_sentence(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        parse_dist(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


@given(st.text(max_size=40) | st.text(alphabet='ab:=,[]{}"\\01. ', max_size=40))
def test_any_text_is_a_dist_or_an_error(text: str) -> None:
    try:
        spec = parse_dist(text)
    except InvalidInput:
        return
    assert spec["name"]
