"""Result files: round trip, merge as a union, labelled data, and every file that is not one of ours."""

from __future__ import annotations

import json
import warnings

import h5py
import numpy as np
import pytest

import brwsim
from brwsim.report.compare import compare
from brwsim.results import schema
from brwsim.results.theory import theory_of

SMALL = "dirichlet:vocab=50,alpha=0.02"


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return brwsim.sweep(SMALL, "1..64", trees=100, out=tmp_path_factory.mktemp("run") / "run.h5")


def test_round_trip(result):
    loaded = brwsim.load(result.path)
    for name in ("P", "mean", "stderr", "variance_ratio", "trees_per_P"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(result, name))
    assert loaded.to_dict() == result.to_dict()
    assert loaded.spec == result.spec
    assert "numba" in loaded.provenance


def test_file_holds_what_it_says(result):
    with h5py.File(result.path) as file:
        assert file.attrs["filetype"] == schema.FILETYPE
        assert list(file.attrs["schema_version"]) == [1, 0]
        assert json.loads(file.attrs["spec_json"])["process"]["alpha"] == 0.02
        assert file.attrs["mu"] == result.moments["mu"]
        assert file.attrs["is_fixed"] == 0
        assert file["bound_renewal"].attrs["kind"] == "upper"
        np.testing.assert_array_equal(file["mean"][:], result.mean)


def test_xarray_reads_the_file_labelled(result):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    with xarray.open_dataset(result.path, engine="h5netcdf") as data:
        assert data["mean"].dims == ("P",)
        assert data["mean"].attrs["units"] == "tokens per call"
        assert float(data["mean"].sel(P=64)) == result.mean[-1]
    memory = result.to_xarray()
    np.testing.assert_array_equal(memory["stderr"], result.stderr)
    assert memory.attrs["seed"] == 0


def test_json_has_null_outside_a_domain(result):
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert {"spec", "seed", "trees", "P", "mean", "stderr", "moments", "bounds"} <= set(data)
    assert data["bounds"]["theorem1"][0] is None
    assert result.bounds["theorem1"][0] == 1.0
    assert len(data["bounds"]["renewal"]) == 64


def test_merge_is_a_union(result, tmp_path):
    assert brwsim.merge([result, result]).to_dict() == result.to_dict()
    other = brwsim.sweep(SMALL, "1..64", trees=100, seed=1)
    both = brwsim.merge([result, other])
    assert both.trees == 200
    assert both.seed == [0, 1]
    assert both.to_dict() == brwsim.merge([other, both, result]).to_dict()
    saved = both.save(tmp_path / "both.h5")
    assert brwsim.load(saved.path).to_dict() == both.to_dict()
    longer = brwsim.sweep(SMALL, "1..64", trees=130)
    assert brwsim.merge([result, longer]).to_dict() == longer.to_dict()


def test_merge_refuses_what_does_not_belong(result):
    with pytest.raises(brwsim.InvalidInput, match="different sweeps"):
        brwsim.merge([result, brwsim.sweep(SMALL, "1..65", trees=10)])
    with pytest.raises(brwsim.InvalidInput, match="nothing"):
        brwsim.merge([])
    key = next(iter(result.blocks))
    forged = dict(result.blocks)
    forged[key] = type(forged[key])(forged[key].trees, *(array + 1.0 for array in forged[key].arrays()))
    with pytest.raises(brwsim.InvalidInput, match="block 0"):
        brwsim.merge([result, brwsim.Result(result.spec, forged)])


# ---------------------------------------------------------------- pools that move


@pytest.fixture
def pool(tmp_path):
    path = tmp_path / "pool.npy"
    np.save(path, np.log([[0.5, 0.25, 0.25], [0.9, 0.05, 0.05], [0.4, 0.3, 0.3]]))
    return path


def pool_laws(path):
    return [
        f"empirical:file={path}",
        {"name": "mixture", "laws": ["uniform:vocab=3", {"name": "empirical", "file": str(path)}]},
        {
            "name": "markov",
            "laws": [{"name": "empirical", "file": str(path)}] * 2,
            "transition": [[0.5, 0.5]] * 2,
        },
    ]


def test_the_path_of_a_pool_is_no_part_of_the_identity(pool, tmp_path):
    copy = tmp_path / "copy.npy"
    copy.write_bytes(pool.read_bytes())
    for here, there in zip(pool_laws(pool), pool_laws(copy), strict=True):
        first = brwsim.sweep(here, "1..32", trees=20, seed=1, out=tmp_path / "a.h5")
        second = brwsim.sweep(there, "1..32", trees=20, seed=2)
        assert "pool.npy" in first.spec.to_json()
        assert first.spec.spec_id == second.spec.spec_id
        assert brwsim.merge([first, second]).trees == 40
        grown = brwsim.sweep(there, "1..32", trees=30, seed=1, out=tmp_path / "a.h5")
        assert grown.trees == 30
        (tmp_path / "a.h5").unlink()
    other = tmp_path / "other.npy"
    np.save(other, np.log([[0.5, 0.5]]))
    assert brwsim.sweep(f"empirical:file={other}", "1..32").spec.spec_id != first.spec.spec_id


@pytest.mark.parametrize("index", range(3))
def test_a_file_needs_no_pool_but_to_grow_trees(pool, tmp_path, index):
    law = pool_laws(pool)[index]
    saved = brwsim.sweep(law, "1..32", trees=40, out=tmp_path / "a.h5")
    before = json.dumps(saved.to_dict()), str(saved), str(compare(saved)), saved.bounds
    pool.unlink()
    theory_of.cache_clear()
    loaded = brwsim.load(saved.path)
    assert (json.dumps(loaded.to_dict()), str(loaded), str(compare(loaded))) == before[:3]
    for name, values in loaded.bounds.items():
        np.testing.assert_array_equal(values, before[3][name])
    assert "annealed" in str(loaded)
    assert brwsim.merge([loaded, loaded]).save(tmp_path / "b.h5").trees == 40
    assert brwsim.load(tmp_path / "b.h5").to_dict() == loaded.to_dict()
    with pytest.raises(brwsim.FileError, match=r"pool\.npy"):
        _ = loaded.spec.process
    with pytest.raises(brwsim.FileError, match=r"pool\.npy"):
        brwsim.sweep(loaded.to_dict()["spec"]["process"], "1..32", trees=50, out=saved.path)
    assert brwsim.load(saved.path).trees == 40


def test_the_moments_of_a_pool_are_those_of_its_completion(pool, result):
    assert "(exact, of the completed pool)" in str(brwsim.sweep(f"empirical:file={pool}", "1,2", trees=8))
    assert "nats^2 (exact)" in str(result)


def damaged(path, kind):
    if kind == "missing":
        return
    if kind == "directory":
        path.mkdir()
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "text":
        path.write_text("not a result")
    else:
        brwsim.sweep(SMALL, "1..64", trees=20, out=path)
        if kind == "truncated":
            path.write_bytes(path.read_bytes()[:3000])
        elif kind == "holes":
            with h5py.File(path, "a") as file:
                del file["blocks"]
        elif kind == "foreign":
            with h5py.File(path, "a") as file:
                file.attrs["filetype"] = "something else"
        elif kind == "future":
            with h5py.File(path, "a") as file:
                file.attrs["schema_version"] = np.array([2, 0])
        elif kind == "another sweep":
            path.unlink()
            brwsim.sweep(SMALL, "1..8", trees=20, out=path)


@pytest.mark.parametrize(
    "kind", ["missing", "directory", "empty", "text", "truncated", "holes", "foreign", "future"]
)
def test_load_refuses(kind, tmp_path):
    path = tmp_path / "run.h5"
    damaged(path, kind)
    with pytest.raises(brwsim.FileError) as caught:
        brwsim.load(path)
    assert "run.h5" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "kind", ["directory", "empty", "text", "truncated", "holes", "foreign", "future", "another sweep"]
)
def test_sweep_leaves_other_files_alone(kind, tmp_path):
    path = tmp_path / "run.h5"
    damaged(path, kind)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(brwsim.FileError):
        brwsim.sweep(SMALL, "1..64", trees=20, out=path)
    assert (path.read_bytes() if path.is_file() else None) == before
    assert [p.name for p in tmp_path.iterdir()] == ["run.h5"]


def test_missing_folder(tmp_path):
    with pytest.raises(brwsim.FileError, match="does not exist"):
        brwsim.sweep(SMALL, "1..4", trees=4, out=tmp_path / "no" / "run.h5")


def test_prints_well(result):
    assert "P='1..64'" in repr(result)
    assert "renewal" in str(result)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert str(brwsim.sweep(SMALL, "1,2", trees=1))
