"""CUDA: the simulator against the CPU tree by tree, PTX with registers and spills, errors; on a GPU with -m gpu."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

import brwsim
from brwsim.engine.backend import CPU, Backend, resolve
from brwsim.engine.plan import Block
from brwsim.errors import DeviceError, InvalidInput
from brwsim.kernels import cuda_shim
from brwsim.kernels.tables import pack
from brwsim.parse import parse_dist
from brwsim.process import process_from_spec

HERE = Path(__file__).parent
NEVER_DROPPED = 52  # twice the largest P and the batch of simulated.py
SMALL = "dirichlet:vocab=50,alpha=0.02"
CASES = [  # (dist, lanes, theta)
    ("dirichlet:vocab=20,alpha=0.4", 1, 0.02),
    ("dirichlet:vocab=20,alpha=0.4", 40, 0.02),  # more lanes than slots, two words of a mask
    (SMALL, 4, 0.5),  # grown again with a lower threshold
    (SMALL, 3, 1e-3),  # arrays fill up: nodes are dropped on the way
    ("dirichlet:vocab=30,alpha=1.5", 4, 0.03),
    ("poisson-dirichlet:theta=0.8", 2, 0.03),
    ("poisson-dirichlet:theta=0.1,discount=0.3", 4, 0.03),
    ("poisson-dirichlet:theta=1.5,discount=0.2", 4, 0.03),
    ("softmax-normal:vocab=31,sigma=3.0", 4, 0.03),
    ("softmax-normal:vocab=6,sigma=2.0", 1, 1e-2),
    ("table:p=[0.6,0.25,0.1,0.05]", 4, 0.02),
    ("uniform:vocab=12", 4, 1e-3),
    ("geometric:p=0.5", 3, 0.02),
    ('mixture:laws=["uniform:vocab=3","dirichlet:vocab=9,alpha=0.1","softmax-normal:vocab=5,sigma=2"],'
     "weights=[0.3,0.4,0.3]", 4, 0.03),
    ("markov:low=0.3,high=1.0,persistence=0.5,vocab=30", 4, 0.03),
    ('regimes:tail=1.5,longest=4,laws=["dirichlet:vocab=9,alpha=0.1","dirichlet:vocab=9,alpha=0.5"]', 4, 0.03),
    ("ar1:rho=0.7,levels=4,low=0.3,high=1.0,vocab=30", 4, 0.03),
    ("rotation:levels=3,low=0.3,high=1.0,vocab=30", 4, 0.03),
    ("ngram:file={corpus},order=3", 1, 0.02),
    ("ngram:file={corpus},order=2,smoothing=\"witten-bell\"", 4, 1e-3),
]  # fmt: skip


def tables_of(dist: str):
    return pack(process_from_spec(parse_dist(dist)).layout())


# --- the simulator ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """The cases' answers, all from one process that simulates the device."""
    corpus = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    corpus.write_text("the cat sat on the mat, and the dog sat on the cat that sat on the mat. " * 3)
    cases = [(dist.replace("{corpus}", f'"{corpus}"'), lanes, theta) for dist, lanes, theta in CASES]
    done = subprocess.run(
        [sys.executable, str(HERE / "simulated.py")],
        input=json.dumps(cases),
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda n: f"{CASES[n][0].split(':')[0]}-{n}")
def test_simulated_trees_equal_the_cpus(simulated, number):
    """The same nodes, whatever the number of lanes; sums are added up in another order."""
    dist, _, theta = CASES[number]
    found = simulated["cases"][number]
    assert found["sums"] < 1e-14
    # nodes of equal weight but another entropy may change places, and a threshold raised at another
    # moment ends the drawing of sticks elsewhere: the same mean, not the same value
    is_free = dist.startswith(("ngram", "mixture")) or theta < 1e-2
    assert found["terms"] < (0.5 if is_free else 1e-13)
    if theta > 1e-2 and max(found["nodes"], found["cuda_nodes"]) <= NEVER_DROPPED:
        assert found["nodes"] == found["cuda_nodes"]


def test_simulated_blocks_equal_the_cpus(simulated):
    """Statistics summed up on the device, a block cut across launches."""
    assert simulated["blocks"] == {"difference": pytest.approx(0.0, abs=1e-13), "trees": 6}


# --- PTX ----------------------------------------------------------------------------------------------------


def compile_to_ptx(kernel, argument_types, capability):
    """What ``cuda.compile_ptx`` promises: no device needed. Device functions ask one for its capability."""
    import numba.cuda.dispatcher as dispatcher

    device = SimpleNamespace(compute_capability=capability)
    with mock.patch.object(dispatcher, "get_current_device", return_value=device):
        return cuda_shim.numba_cuda().compile_ptx(kernel.py_func, argument_types, cc=capability)[0]


def nothing(values):
    """The least of kernels."""


@cache
def compiler_is_missing() -> str | None:
    from numba import types

    try:
        compile_to_ptx(SimpleNamespace(py_func=nothing), (types.Array(types.float64, 1, "C"),), (8, 0))
    except Exception as error:
        return f"no CUDA compiler: {type(error).__name__}"
    return None


@cache
def ptx_of(name: str, capability: tuple[int, int]) -> str:
    from numba import types
    from numba.np.numpy_support import from_dtype

    from brwsim.kernels import cuda_tree

    def array(dtype, dimensions=1):
        return types.Array(from_dtype(np.dtype(dtype)), dimensions, "C")

    reals, counts = array("f8", 2), array("i4", 2)
    tables = tables_of("uniform:vocab=3")
    signatures = {
        "grow_kernel": (
            types.NamedTuple([array(a.dtype, a.ndim) for a in tables], type(tables)),
            *(types.uint64, array("u8"), array("i8"), types.float64),
            types.Tuple((reals, array("u8", 2), reals, reals)),
            *(counts, counts, reals, reals, reals, array("i8")),
        ),
        "summarise_kernel": (reals, reals, array("i8"), array("f8", 3)),
    }
    return compile_to_ptx(getattr(cuda_tree, name), signatures[name], capability)


@pytest.mark.parametrize("capability", [(8, 0), (9, 0)], ids="sm_{0[0]}{0[1]}".format)
@pytest.mark.parametrize(("name", "most_registers"), [("grow_kernel", 192), ("summarise_kernel", 64)])
def test_kernels_compile_without_a_device(name, most_registers, capability, tmp_path):
    if reason := compiler_is_missing():
        pytest.skip(reason)
    ptx = ptx_of(name, capability)
    target = "sm_{}{}".format(*capability)
    assert f".target {target}" in ptx
    assert not re.search(r"atom\S*\.f(32|64)", ptx), "an atomic sum of floats depends on the order of threads"
    if ptxas := find_ptxas():
        (tmp_path / "kernel.ptx").write_text(ptx)
        command = [ptxas, f"-arch={target}", "-v", "kernel.ptx", "-o", "kernel.cubin"]
        told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        if "Unsupported .version" in told.stderr:
            pytest.skip("ptxas is older than the compiler")
        assert told.returncode == 0, told.stderr[-500:]
        assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in told.stderr
        assert int(re.search(r"Used (\d+) registers", told.stderr)[1]) <= most_registers
        shared = re.search(r"(\d+) bytes smem", told.stderr)
        assert shared is None or int(shared[1]) <= 24 * 1024


def find_ptxas() -> str | None:
    packaged = [path / "nvidia/cu13/bin/ptxas" for path in map(Path, sys.path)]
    return shutil.which("ptxas") or next((str(path) for path in packaged if path.exists()), None)


# --- memory, batches ----------------------------------------------------------------------------------------


def test_memory_is_shared_between_trees_at_work_and_results():
    from brwsim.kernels.cuda import share_memory

    assert share_memory(140e9, 10**6, 4096, 64, 0, 132) == (132 * 16, 10**6)
    blocks, at_once = share_memory(1e9, 10**6, 4096, 4096, 0, 132)
    assert 500 < blocks < 800
    assert 5000 < at_once < 7000
    assert share_memory(1e9, 3, 4096, 4096, 0, 132) == (3, 3)
    with pytest.raises(DeviceError, match="out of memory: a tree of P = 4096 takes"):
        share_memory(1e6, 3, 4096, 4096, 0, 132)


def test_ranges_longer_than_a_launch_are_cut():
    from brwsim.kernels.cuda import _launches

    launches = [
        [(p.owner, p.first, p.count) for p in group] for group in _launches([(0, 3), (50, 9), (7, 1)], 4)
    ]
    assert launches == [[(0, 0, 3)], [(1, 50, 4)], [(1, 54, 4)], [(1, 58, 1), (2, 7, 1)]]


def test_batches():
    blocks = [Block(0, i, 100 * i, 100, reach) for i, reach in enumerate([9, 9, 9, 5])]
    assert list(CPU.batches(blocks, [4] * 4)) == [[block] for block in blocks]
    assert list(Backend("cuda").batches(blocks, [4] * 4)) == [blocks[:3], blocks[3:]]
    tall = [2**21] * 4  # 100 such trees are most of a batch
    assert list(Backend("cuda").batches(blocks, tall)) == [blocks[:1], blocks[1:2], blocks[2:3], blocks[3:]]


# --- asking for it ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("driver", "device", "sentence"),
    [
        (None, 0, "no NVIDIA driver was found"),
        (cuda_shim.Driver("13.0", ()), 0, "the NVIDIA driver (CUDA 13.0) sees no device"),
        (cuda_shim.Driver("13.0", ("H200",)), 1, "device 1 does not exist; this machine has device 0"),
        (cuda_shim.Driver("13.0", ("H200",) * 4), 7, "device 7 does not exist; this machine has 0 to 3"),
    ],
)
def test_what_is_missing_is_said(monkeypatch, driver, device, sentence):
    monkeypatch.setattr(cuda_shim, "driver", lambda: driver)
    with pytest.raises(DeviceError, match=re.escape(sentence)) as caught:
        resolve("cuda", device)
    assert caught.value.exit_code == 4
    chosen = resolve("auto", device)
    assert (chosen.name, chosen.note) == ("cpu", f"{sentence}; growing trees on the processors")


def test_auto_takes_a_device_when_it_pays(monkeypatch):
    monkeypatch.setattr(cuda_shim, "missing", lambda device: None)
    assert resolve("auto") == resolve("cuda") == Backend("cuda")
    assert resolve("auto", 1, 2**40) == Backend("cuda", 1)
    assert resolve("auto", 0, 1000).name == "cpu"
    assert resolve("cuda", 0, 1000).name == "cuda"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"backend": "tpu"}, "unknown backend 'tpu'"),
        ({"backend": "cuda", "device": -1}, "device"),
        ({"backend": "cuda", "device": 0.5}, "device"),
        ({"backend": "cpu", "device": 2}, "device 2 is a GPU's number"),
    ],
)
def test_bad_arguments(arguments, word, tmp_path):
    with pytest.raises(InvalidInput, match=re.escape(word)):
        brwsim.sweep(SMALL, "1..8", out=tmp_path / "run.h5", **arguments)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(cuda_shim.driver() is not None, reason="there is a driver")
@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--backend", "cuda"], 4, "brwsim: error: no NVIDIA driver was found; backend cpu needs none\n"),
        (["--backend", "auto"], 0, "brwsim: no NVIDIA driver was found; growing trees on the processors\n"),
        (["--backend", "tpu"], 2, "'tpu'"),
        (["--device", "1"], 2, "device 1"),
    ],
)
def test_command_line(options, code, said):
    command = [sys.executable, "-m", "brwsim", "sweep", "--P", "1,4", "--dist", "uniform:vocab=4", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == code
    assert done.stderr.count(said) == 1
    assert "Traceback" not in done.stderr
    assert bool(done.stdout) == (code == 0)


def test_errors_of_the_driver_are_one_sentence():
    driver_error = type("CudaAPIError", (Exception,), {"__module__": "numba.cuda.cudadrv.driver"})
    for said, told in [
        ("[2] cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY", "^out of memory growing trees; free some"),
        ("[700] illegal\naddress", r"^the GPU failed growing trees: \[700\] illegal address$"),
    ]:
        with pytest.raises(DeviceError, match=told), cuda_shim.device_errors("growing trees"):
            raise driver_error(said)
    with pytest.raises(ZeroDivisionError), cuda_shim.device_errors("growing trees"):
        raise ZeroDivisionError


def test_finished_blocks_are_kept_when_the_device_fails(tmp_path, monkeypatch):
    """The second batch runs out of memory: what the first one found is in the file."""
    import brwsim.engine.run as engine
    import brwsim.simulate as simulate

    calls = []

    def compute(spec, seed, blocks, backend):
        calls.append(blocks)
        if len(calls) == 2:
            raise DeviceError("out of memory")
        return [engine_block(spec, seed, block) for block in blocks]

    from brwsim.engine.compute import compute_block as engine_block

    monkeypatch.setattr(engine, "compute_blocks", compute)
    monkeypatch.setattr(simulate, "resolve", lambda *_: Backend("cuda"))
    monkeypatch.setattr("brwsim.engine.backend._NODES_AT_ONCE", 3000)
    out = tmp_path / "run.h5"
    with pytest.raises(DeviceError):
        brwsim.sweep(SMALL, "1..64", trees=200, out=out, backend="cuda")
    assert brwsim.load(out).trees == sum(block.trees for block in calls[0]) > 4


# --- on a GPU -----------------------------------------------------------------------------------------------


def on_a_device() -> None:
    if reason := cuda_shim.missing():
        pytest.skip(reason)


@pytest.mark.gpu
def test_gpu_philox_words_are_the_same_bits():
    on_a_device()
    cuda = cuda_shim.numba_cuda()
    from brwsim.kernels.device.philox import philox as on_cpu

    philox = cuda_shim.kernel_body()["philox"].philox

    @cuda.jit
    def kernel(counters, words):
        i = cuda.grid(1)
        if i < words.shape[0]:
            c = counters[i]
            words[i, 0], words[i, 1], words[i, 2], words[i, 3] = philox(c[0], c[1], c[2], c[3], c[4], c[5])

    counters = np.random.default_rng(1).integers(0, 2**32, (4096, 6), dtype=np.uint32)
    words = cuda.device_array((4096, 4), np.uint32)
    kernel[64, 64](cuda.to_device(counters), words)
    np.testing.assert_array_equal(words.copy_to_host(), [on_cpu(*counter) for counter in counters])


@pytest.mark.gpu
@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda n: f"{CASES[n][0].split(':')[0]}-{n}")
def test_gpu_trees_equal_the_cpus(number):
    """Sums to 1e-12 but for a counted few: a rejection that goes the other way changes its tree."""
    on_a_device()
    from brwsim.kernels import cpu, cuda

    dist = CASES[number][0]
    if "{corpus}" in dist:
        dist = dist.replace("{corpus}", f'"{HERE / "test_cuda.py"}"')
    tables = tables_of(dist)
    grid = np.array([1, 2, 3, 10, 100, 1000, 4096])
    trees = 400
    sums, terms, nodes = cpu.grow_trees(tables, 2**63 + 5, 1000, trees, grid, 1e-4)
    cuda_sums, cuda_terms, cuda_nodes = cuda.grow_trees(tables, 2**63 + 5, 1000, trees, grid, 1e-4)
    other = np.any(np.abs(cuda_sums / sums - 1.0) > 1e-12, axis=1)
    print(f"{dist}: {other.sum()} of {trees} trees differ; {nodes} nodes, on the GPU {cuda_nodes}")
    assert other.sum() <= 2
    if "ngram" not in dist:
        np.testing.assert_allclose(cuda_terms[~other], terms[~other], atol=1e-9)


@pytest.mark.gpu
def test_gpu_estimates_agree_and_mix_in_one_file(tmp_path):
    on_a_device()
    expected = brwsim.sweep(SMALL, "1..1024", trees=3000, seed=4)
    result = brwsim.sweep(SMALL, "1..1024", trees=3000, seed=4, backend="cuda")
    np.testing.assert_allclose(result.mean, expected.mean, rtol=1e-9)
    np.testing.assert_allclose(result.stderr, expected.stderr, rtol=1e-6, atol=1e-12)
    again = brwsim.sweep(SMALL, "1..1024", trees=3000, seed=4, backend="cuda")
    np.testing.assert_array_equal(result.mean, again.mean)
    brwsim.sweep(SMALL, "1..1024", trees=700, seed=4, out=tmp_path / "mixed.h5")
    mixed = brwsim.sweep(SMALL, "1..1024", trees=3000, seed=4, out=tmp_path / "mixed.h5", backend="cuda")
    assert mixed.trees == 3000
    np.testing.assert_allclose(mixed.mean, expected.mean, rtol=1e-9)
