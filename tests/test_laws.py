"""Offspring laws: exact moments, exact step laws, specs that round-trip, errors that say what to do."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special

from brwsim.errors import InvalidInput
from brwsim.process.base import Law, Logits, Row, Sticks
from brwsim.process.laws import LAWS, as_law, law_from_spec
from brwsim.process.laws.build import keys_of
from brwsim.process.laws.fixed import FixedLaw, Geometric, Table, Uniform, Zipf
from brwsim.process.laws.mixture import Mixture
from brwsim.process.laws.softmax import SoftmaxNormal
from brwsim.process.laws.sticks import Dirichlet, PoissonDirichlet, polygamma_steps

SAMPLES = [
    "dirichlet",
    "dirichlet:vocab=50,alpha=0.02",
    "dirichlet:vocab=2,alpha=30",
    "dirichlet:vocab=262144,entropy=2",
    "poisson-dirichlet",
    "poisson-dirichlet:theta=0.7,discount=0.3",
    "poisson-dirichlet:theta=-0.2,discount=0.5",
    "softmax-normal",
    "softmax-normal:vocab=30,sigma=2",
    "table:p=[0.1,0.6,0,0.25,0.05]",
    "table:p=[1]",
    "uniform",
    "uniform:vocab=1",
    "uniform:vocab=7",
    "zipf",
    "zipf:vocab=300,exponent=1.2",
    "geometric",
    "geometric:p=0.03",
    'mixture:laws=["dirichlet:vocab=5,alpha=0.3","geometric:p=0.4","uniform:vocab=3"],weights=[0.5,0.3,0.2]',
    'mixture:laws=["softmax-normal:vocab=30,sigma=2","zipf:vocab=9,exponent=1"]',
]


# ---------------------------------------------------------------- moments


@pytest.mark.parametrize(
    ("vocab", "alpha", "mu", "mu2"),
    [(50, 0.02, 0.968, 1.889), (20, 0.2, 1.795, 4.269), (50, 0.005, 0.342, 0.552)],
)
def test_dirichlet_moments_match_published_figures(vocab: int, alpha: float, mu: float, mu2: float) -> None:
    law = Dirichlet(vocab, alpha)
    assert law.mu == pytest.approx(mu, abs=5e-4)
    assert law.mu2 == pytest.approx(mu2, abs=5e-4)


@pytest.mark.parametrize(
    ("vocab", "alpha"), [(2, 1.0), (2, 0.3), (50, 0.02), (1000, 0.7), (262144, 1e-5), (5, 400.0)]
)
def test_dirichlet_moments_are_integrals_over_one_component(vocab: int, alpha: float) -> None:
    # Sum over children of E[p (-ln p)^k], p ~ Beta(alpha, (V-1) alpha), in y = -ln p.
    b = (vocab - 1) * alpha
    log_scale = math.log(vocab) - float(special.betaln(alpha, b))

    def density(y: float) -> float:
        return math.exp(log_scale - (1 + alpha) * y + (b - 1) * math.log(-math.expm1(-y))) if y > 0 else 0.0

    for power, exact in enumerate([1.0, Dirichlet(vocab, alpha).mu, Dirichlet(vocab, alpha).mu2]):
        # y = e^t tames the singularity at 0 for b < 1.
        value, _ = integrate.quad(
            lambda t, k=power: density(math.exp(t)) * math.exp((k + 1) * t),
            -120,
            6,
            limit=500,
            points=[-20, -5, 0, 2],
        )
        assert value == pytest.approx(exact, rel=1e-7)


@pytest.mark.parametrize(
    ("theta", "discount"), [(1.0, 0.0), (0.3, 0.0), (50.0, 0.0), (0.0, 0.5), (-0.3, 0.6), (4.0, 0.9)]
)
def test_pitman_yor_moments_are_those_of_the_size_biased_beta(theta: float, discount: float) -> None:
    law = PoissonDirichlet(theta, discount)
    a, b = 1 - discount, theta + discount
    for power, exact in ((1, law.mu), (2, law.mu2)):
        value, _ = integrate.quad(
            lambda t, k=power: math.exp(
                (k + 1) * t
                - a * math.exp(t)
                + (b - 1) * math.log(-math.expm1(-math.exp(t)))
                - float(special.betaln(a, b))
            ),
            -100,
            7,
            limit=500,
            points=[-20, -5, 0, 3],
        )
        assert value == pytest.approx(exact, rel=1e-8)


def test_dirichlet_tends_to_poisson_dirichlet() -> None:
    limit = PoissonDirichlet(theta=0.8)
    law = Dirichlet(vocab=2**31 - 1, alpha=0.8 / (2**31 - 1))
    assert law.mu == pytest.approx(limit.mu, rel=1e-8)
    assert law.mu2 == pytest.approx(limit.mu2, rel=1e-8)


@given(a=st.floats(1e-6, 1e6), gap=st.floats(1e-6, 1e6))
def test_polygamma_steps_match_the_library_where_that_is_accurate(a: float, gap: float) -> None:
    first, second = polygamma_steps(a, gap)
    upper, lower = special.digamma(a + gap), special.digamma(a)
    assert first == pytest.approx(upper - lower, rel=1e-13, abs=2e-15 * (abs(upper) + abs(lower)))
    upper, lower = special.polygamma(1, a), special.polygamma(1, a + gap)
    assert second == pytest.approx(upper - lower, rel=1e-13, abs=2e-15 * (upper + lower))


@pytest.mark.parametrize("alpha", [1e-8, 1e-100])
def test_tiny_alpha_keeps_every_digit(alpha: float) -> None:
    # psi(1 + x) - psi(1 + y) -> (x - y) pi^2/6 and psi'(1 + y) - psi'(1 + x) -> 2 zeta(3) (x - y).
    law = Dirichlet(vocab=2, alpha=alpha)
    zeta3 = 1.2020569031595942
    # Next order: -zeta(3) (x^2 - y^2), with x = 2 alpha, y = alpha.
    assert law.mu == pytest.approx(alpha * math.pi**2 / 6 - 3 * zeta3 * alpha**2, rel=4e-16)
    assert law.mu2 == pytest.approx(2 * zeta3 * alpha, rel=20 * max(alpha, 1e-16))


@pytest.mark.parametrize("sigma", [1e-3, 0.2, 1.0, 3.0, 25.0])
def test_softmax_of_two_is_a_logistic_of_one_normal(sigma: float) -> None:
    def binary(d: float, power: int) -> float:
        # p = 1/(1 + e^-d) and its complement; -ln p = log1p(e^-d).
        up, down = np.logaddexp(0, -d), np.logaddexp(0, d)
        return float(math.exp(-up) * up**power + math.exp(-down) * down**power)

    law = SoftmaxNormal(vocab=2, sigma=sigma)
    scale = sigma * math.sqrt(2)
    for power, exact in ((1, law.mu), (2, law.mu2)):
        value, _ = integrate.quad(
            lambda d, k=power: (
                2 * binary(d, k) * math.exp(-0.5 * (d / scale) ** 2) / scale / math.sqrt(2 * math.pi)
            ),
            0,
            min(12 * scale, 60),
            epsabs=0,
            epsrel=1e-12,
            limit=500,
        )
        assert value == pytest.approx(exact, rel=2e-11)


@pytest.mark.parametrize(("vocab", "sigma"), [(5, 1.0), (100, 3.0), (300, 12.0)])
def test_softmax_moments_agree_with_sampling(vocab: int, sigma: float) -> None:
    logits = sigma * np.random.default_rng(5).normal(size=(1_000_000 // vocab, vocab))
    log_p = special.log_softmax(logits, axis=1)
    law = SoftmaxNormal(vocab=vocab, sigma=sigma)
    for power, exact in ((1, law.mu), (2, law.mu2)):
        samples = (np.exp(log_p) * (-log_p) ** power).sum(axis=1)
        error = samples.std() / math.sqrt(samples.size)
        assert abs(samples.mean() - exact) < 4 * error
        assert error < 0.03 * exact


def test_softmax_with_small_sigma_is_nearly_uniform() -> None:
    # mu = ln V - sigma^2 (1 - 1/V)/2 + O(sigma^4)
    law = SoftmaxNormal(vocab=1000, sigma=1e-3)
    assert math.log(1000) - law.mu == pytest.approx(0.5e-6 * 0.999, rel=1e-5)


def test_softmax_covers_its_whole_range() -> None:
    for vocab, sigma in itertools.product((2, 262144, 2**22), (1e-9, 0.999, 1.001, 30.0, 1e4)):
        law = SoftmaxNormal(vocab, sigma)
        assert 0 < law.mu <= math.log(vocab) * (1 + 1e-14)
        assert law.mu2 >= law.mu**2 * (1 - 1e-12)
    below, above = SoftmaxNormal(50, 1 - 1e-12), SoftmaxNormal(50, 1 + 1e-12)
    assert below.mu == pytest.approx(above.mu, rel=1e-11)  # the two sets of nodes agree where they meet


@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=40))
def test_table_moments_are_sums(weights: list[float]) -> None:
    p = [w / math.fsum(weights) for w in weights]
    law = Table(p)
    assert law.mu == pytest.approx(math.fsum(-x * math.log(x) for x in p), rel=1e-14, abs=1e-15)
    assert law.mu2 == pytest.approx(math.fsum(x * math.log(x) ** 2 for x in p), rel=1e-14, abs=1e-15)


@pytest.mark.parametrize("p", [0.9, 0.5, 0.1, 1e-3])
def test_geometric_closed_form_is_the_sum_of_its_row(p: float) -> None:
    law = Geometric(p)
    row = law.rows()[0][1]
    assert isinstance(row, Row)
    listed = Table((row.probs / row.probs.sum()).tolist())
    assert law.mu == pytest.approx(listed.mu, rel=1e-12)
    assert law.mu2 == pytest.approx(listed.mu2, rel=1e-12)


def test_zipf_and_uniform_special_cases() -> None:
    flat, uniform = Zipf(vocab=100, exponent=0.0), Uniform(100)
    assert (flat.mu, flat.mu2) == pytest.approx((uniform.mu, uniform.mu2), rel=1e-14)
    steep = Zipf(vocab=2, exponent=60.0)  # p2 = 2^-60: -ln p1 = 2^-60 must not be lost
    assert steep.mu == pytest.approx(2.0**-60 * (1 + 60 * math.log(2)), rel=1e-13)


def test_mixture_moments_are_weighted_means() -> None:
    parts = [Dirichlet(5, 0.3), Uniform(3)]
    law = Mixture(parts, [0.25, 0.75])
    assert law.mu == pytest.approx(0.25 * parts[0].mu + 0.75 * parts[1].mu, rel=1e-15)
    assert law.mu2 == pytest.approx(0.25 * parts[0].mu2 + 0.75 * parts[1].mu2, rel=1e-15)
    assert Mixture(parts).weights == (0.5, 0.5)


# ---------------------------------------------------------------- step law


@pytest.mark.parametrize("text", SAMPLES)
def test_step_cdf_has_mean_mu_and_second_moment_mu2(text: str) -> None:
    law = as_law(text)
    if law.step_cdf(np.zeros(1)) is None:
        assert "softmax-normal" in text
        return
    atoms = [-np.log(row.probs) for _, row in law.rows() if isinstance(row, Row)]
    if isinstance(law, FixedLaw):
        # A step function: integrate it piece by piece, exactly.
        edges = np.unique(np.concatenate([[0.0], *atoms]))
        survival = 1 - _cdf(law, edges[:-1])
        assert (survival * np.diff(edges)).sum() == pytest.approx(law.mu, rel=1e-9, abs=1e-12)
        assert (survival * np.diff(edges**2)).sum() == pytest.approx(law.mu2, rel=1e-9, abs=1e-12)
        return
    # Gauss-Legendre between the atoms and on a logarithmic grid towards 0 and infinity.
    edges = np.unique(np.concatenate([[0.0], np.geomspace(1e-30, 400, 3000), *atoms]))
    nodes, weights = np.polynomial.legendre.leggauss(8)
    half = np.diff(edges)[:, None] / 2
    y = edges[:-1, None] + half * (1 + nodes)
    survival = (1 - _cdf(law, y)) * weights * half
    assert survival.sum() == pytest.approx(law.mu, rel=1e-9)
    assert (2 * y * survival).sum() == pytest.approx(law.mu2, rel=1e-9)


def _cdf(law: Law, y: Any) -> Any:
    values = law.step_cdf(np.asarray(y, dtype=np.float64))
    assert values is not None
    return values


@pytest.mark.parametrize("text", [t for t in SAMPLES if "softmax" not in t])
def test_step_cdf_is_a_distribution_function(text: str) -> None:
    law = as_law(text)
    y = np.concatenate([[-1.0, -1e-300], np.linspace(0, 60, 4001), [800.0, np.inf]])
    values = _cdf(law, y)
    assert values.dtype == np.float64
    assert values.shape == y.shape
    assert values[0] == values[1] == 0
    assert values[-1] == 1
    assert np.all(np.diff(values) >= -1e-15)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=12))
def test_step_cdf_of_a_table_is_right_continuous_at_its_atoms(counts: list[int]) -> None:
    p = np.array(counts) / sum(counts)
    law = Table(p.tolist())
    atoms = -np.log(p)
    expected = [math.fsum(p[p >= x]) for x in p]
    assert _cdf(law, atoms) == pytest.approx(expected, rel=1e-14)
    below = [math.fsum(p[p > x]) for x in p]
    assert _cdf(law, np.nextafter(atoms, -np.inf)) == pytest.approx(below, rel=1e-14, abs=1e-300)


def test_step_cdf_of_dirichlet_is_accurate_at_both_ends() -> None:
    law = PoissonDirichlet(theta=2.0)  # W ~ Beta(1, 2): F(y) = (1 - e^-y)^2
    y = np.array([1e-12, 1e-3, 0.69, 0.7, 5.0, 30.0])
    assert _cdf(law, y) == pytest.approx((-np.expm1(-y)) ** 2, rel=1e-14)
    tiny = _cdf(Dirichlet(vocab=2, alpha=1e-100), np.array([0.0, 1e-9, 1.0, 50.0]))
    assert tiny[0] == 0
    assert np.all(tiny[1:] > 1 - 1e-15)


# ---------------------------------------------------------------- entropy


@settings(max_examples=60)
@given(vocab=st.integers(2, 262144), share=st.floats(1e-12, 1 - 1e-12))
def test_dirichlet_alpha_is_solved_to_double_precision(vocab: int, share: float) -> None:
    entropy = share * math.log(vocab)
    assert Dirichlet(vocab, entropy=entropy).mu == pytest.approx(entropy, rel=5e-16)


@pytest.mark.parametrize("vocab", [2, 32000, 262144])
def test_dirichlet_entropy_close_to_its_limits(vocab: int) -> None:
    for entropy in (1e-100, 1e-9, math.log(vocab) - 1e-9, math.nextafter(math.log(vocab), 0)):
        assert Dirichlet(vocab, entropy=entropy).mu == pytest.approx(entropy, rel=5e-16)


@pytest.mark.parametrize(
    ("text", "rel"),
    [
        ("poisson-dirichlet:entropy={}", 5e-16),
        ("poisson-dirichlet:entropy={},discount=0.5", 1e-14),
        ("softmax-normal:entropy={}", 1e-11),
        ("softmax-normal:vocab=262144,entropy={}", 1e-11),
        ("zipf:entropy={}", 1e-13),
        ("geometric:entropy={}", 1e-13),
    ],
)
def test_entropy_is_met(text: str, rel: float) -> None:
    for entropy in (0.05, 0.683, 3.0, 8.0):
        assert as_law(text.format(entropy)).mu == pytest.approx(entropy, rel=rel)


@pytest.mark.parametrize("name", ["dirichlet", "poisson-dirichlet", "softmax-normal", "zipf", "geometric"])
def test_plain_laws_are_llm_like(name: str) -> None:
    assert as_law(name).mu == pytest.approx(0.683, rel=1e-11)
    assert as_law(name) == as_law(f"{name}:entropy=0.683")


# ---------------------------------------------------------------- specs and rows


@pytest.mark.parametrize("text", SAMPLES)
def test_spec_round_trips_through_json(text: str) -> None:
    law = as_law(text)
    spec = law.to_spec()
    again = law_from_spec(json.loads(json.dumps(spec)))
    assert again == law
    assert hash(again) == hash(law)
    assert again.to_spec() == spec
    assert spec["name"] == law.name
    assert "entropy" not in spec


def test_equal_laws_have_equal_specs() -> None:
    assert Dirichlet(50, 1).to_spec() == Dirichlet(50.0, 1.0).to_spec()  # type: ignore[arg-type]
    assert Dirichlet(np.int64(50), np.float64(0.5)).to_spec() == Dirichlet(50, 0.5).to_spec()  # type: ignore[arg-type]
    assert (
        Table([0.25, 0, 0.75]).to_spec()
        == Table([0.75, 0.25]).to_spec()
        == {"name": "table", "p": [0.75, 0.25]}
    )
    assert Zipf(5, -0.0).to_spec() == Zipf(5, 0).to_spec()
    assert str(Zipf(5, -0.0)) == str(Zipf(5, 0))
    resolved = Dirichlet(50, entropy=1.0)
    assert resolved == Dirichlet(50, resolved.alpha)


@pytest.mark.parametrize("text", SAMPLES)
def test_rows_are_what_a_kernel_can_draw(text: str) -> None:
    law = as_law(text)
    rows = law.rows()
    assert math.fsum(w for w, _ in rows) == pytest.approx(1, rel=1e-14)
    for _, row in rows:
        if isinstance(row, Row):
            assert row.probs.dtype == np.float64
            assert row.probs.flags.c_contiguous
            assert np.all(row.probs > 0)
            assert np.all(np.diff(row.probs) <= 0)
            assert 0 <= row.tail_prob <= row.probs[-1]
            assert math.fsum(row.probs) + row.tail_count * row.tail_prob == pytest.approx(1, rel=1e-13)
        else:
            assert isinstance(row, Sticks | Logits)
    assert law.is_fixed == isinstance(law, FixedLaw)


def test_sticks_carry_the_parameters_of_the_law() -> None:
    row = Dirichlet(50, 0.02).rows()[0][1]
    assert isinstance(row, Sticks)
    assert (row.discount, row.strength, row.vocab) == (-0.02, 1.0, 50)
    row = PoissonDirichlet(theta=0.7, discount=0.3).rows()[0][1]
    assert isinstance(row, Sticks)
    assert (row.discount, row.strength, row.vocab) == (0.3, 0.7, None)


def test_vocab() -> None:
    assert as_law("table:p=[0.5,0,0.5]").vocab == 2
    assert as_law("geometric").vocab is None
    assert Mixture(["uniform:vocab=3", "uniform:vocab=9"]).vocab == 9
    assert Mixture(["uniform:vocab=3", "geometric"]).vocab is None


def test_nested_mixture_is_flattened_into_rows() -> None:
    inner = {"name": "mixture", "laws": ["uniform:vocab=2", "geometric:p=0.5"], "weights": [0.4, 0.6]}
    rows = Mixture([inner, Dirichlet(5, 0.1)], [0.5, 0.5]).rows()
    assert [w for w, _ in rows] == pytest.approx([0.2, 0.3, 0.5], rel=1e-15)
    assert [type(row) for _, row in rows] == [Row, Row, Sticks]


def test_largest_laws_are_allowed() -> None:
    assert Geometric(p=1e-5).rows()[0][1].probs.size <= 2**22  # type: ignore[union-attr]
    assert Zipf(vocab=262144, exponent=1.0).mu == pytest.approx(8.3, abs=0.5)
    assert Uniform(262144).rows()[0][1].probs.size == 262144  # type: ignore[union-attr]


# ---------------------------------------------------------------- errors


def test_registry_is_keyed_by_name() -> None:
    assert all(LAWS[name].name == name for name in LAWS)
    assert keys_of(Table) == {"p": True}
    assert keys_of(Dirichlet) == {"vocab": False, "alpha": False, "entropy": False}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "dirichle",
            r"^unknown law 'dirichle' \(did you mean dirichlet\?\); choose one of dirichlet, poisson-",
        ),
        ("Zipf", r"unknown law 'Zipf' \(did you mean zipf\?\)"),
        ("qqq", r"^unknown law 'qqq'; choose one of dirichlet, .*, mixture$"),
        (
            "dirichlet:alfa=1",
            r"^dirichlet has no key 'alfa' \(did you mean alpha\?\); its keys are vocab, alpha, entropy$",
        ),
        ("uniform:p=1", r"^uniform has no key 'p'; its keys are vocab$"),
        ("table", r"^table needs the key p; write table:p="),
        ("mixture", r"^mixture needs the key laws"),
        ("dirichlet:alpha=0", r"^dirichlet: alpha must be above 0 .*got 0$"),
        ("dirichlet:alpha=-1", r"alpha must be above 0 .*got -1$"),
        ("dirichlet:alpha=1e300", r"alpha must be above 0 and at most 3.12e\+195, got 1"),
        ("dirichlet:alpha=oops", r"^dirichlet: alpha must be a number, not 'oops'$"),
        ("dirichlet:alpha=true", r"alpha must be a number, not True"),
        ("dirichlet:alpha=1e999", r"alpha must be a finite number, not inf"),
        ("dirichlet:alpha=NaN", r"alpha must be a number, not 'NaN'"),
        ("dirichlet:vocab=1", r"^dirichlet: vocab must lie in 2\.\.2147483647, got 1$"),
        ("dirichlet:vocab=2.5", r"^dirichlet: vocab must be a whole number, not 2\.5$"),
        ("dirichlet:vocab=null", r"vocab must be a number, not None"),
        ("dirichlet:vocab=" + "9" * 400, r"vocab must be a finite number"),
        ("dirichlet:alpha=1,entropy=1", r"^dirichlet: give alpha or entropy, not both$"),
        (
            "dirichlet:vocab=2,entropy=0.7",
            r"entropy must lie between 0 and 0\.693147 nats \(ln 2\), got 0\.7$",
        ),
        ("dirichlet:entropy=0", r"entropy must lie between 0 and 10\.3735 nats \(ln 32000\), got 0$"),
        (
            "poisson-dirichlet:discount=1",
            r"discount must lie in \[0, 1\), got 1; for a finite vocabulary use dirichlet",
        ),
        ("poisson-dirichlet:discount=-0.1,theta=1", r"discount must lie in \[0, 1\)"),
        ("poisson-dirichlet:theta=-0.5,discount=0.5", r"theta must be above -discount \(-0\.5\)"),
        ("poisson-dirichlet:theta=0", r"theta must be above -discount"),
        ("poisson-dirichlet:theta=1,entropy=1", r"give theta or entropy, not both"),
        ("poisson-dirichlet:entropy=-1", r"entropy must lie between 0 and 100 nats, got -1"),
        ("poisson-dirichlet:discount=0.99999999,entropy=1e-60", r"is too small to be reached with discount"),
        ("softmax-normal:sigma=0", r"sigma must be above 0 and at most 10000, got 0"),
        ("softmax-normal:sigma=1,entropy=1", r"give sigma or entropy, not both"),
        ("softmax-normal:entropy=1e-9", r"needs a sigma above 10000; raise entropy"),
        ("softmax-normal:entropy=9", r"entropy must lie between 0 and 8\.31777 nats \(ln 4096\)"),
        ("table:p=0.5", r"^table: p must be a list of probabilities, not 0\.5$"),
        ("table:p=abc", r"p must be a list of probabilities, not 'abc'"),
        ("table:p=[]", r"p must list 1\.\.4194304 probabilities, got 0"),
        ("table:p=[0.5,0.4]", r"^table: p must sum to 1, but sums to 0\.9; divide each entry by that$"),
        ("table:p=[1.5,-0.5]", r"^table: p\[1\] must not be negative, got -0\.5$"),
        ('table:p=[0.5,"x"]', r"^table: p\[1\] must be a number, not 'x'$"),
        ("uniform:vocab=0", r"^uniform: vocab must lie in 1\.\.4194304, got 0$"),
        ("uniform:vocab=5000000", r"vocab must lie in 1\.\.4194304"),
        ("zipf:vocab=1", r"^zipf: vocab must lie in 2\.\.4194304, got 1$"),
        ("zipf:exponent=-1", r"^zipf: exponent must lie in 0\.\.1000, got -1$"),
        ("zipf:exponent=1,entropy=1", r"give exponent or entropy, not both"),
        ("zipf:vocab=2,entropy=0.7", r"^zipf: entropy must lie between"),
        ("geometric:p=1", r"p must lie in \[1e-05, 1\), got 1; uniform:vocab=1 is the limit p = 1"),
        ("geometric:p=1e-6", r"p must lie in \[1e-05, 1\)"),
        ("geometric:p=0.5,entropy=1", r"give p or entropy, not both"),
        ("geometric:entropy=13", r"entropy must lie between 0 and 12\.5129 nats \(its value at p = 1e-05\)"),
        ("geometric:entropy=1e-30", r"is too small for p to differ from 1; raise entropy"),
        ("mixture:laws=[]", r"^mixture: laws must be a list of laws"),
        ("mixture:laws=zipf", r"laws must be a list of laws such as .* not 'zipf'"),
        ('mixture:laws=["foo"]', r"^mixture: laws\[0\]: unknown law 'foo'; choose"),
        ("mixture:laws=[3]", r"^mixture: laws\[0\]: a law must be a text or a mapping with a name, not 3$"),
        ("mixture:laws=[{}]", r"^mixture: laws\[0\]: the law has no name; choose one of"),
        ('mixture:laws=["zipf"],weights=[0.5,0.5]', r"give one weight per law, got 2 weights for 1 laws"),
        (
            'mixture:laws=["zipf","uniform"],weights=[1,0]',
            r"weights\[1\] must be above 0; leave that law out",
        ),
        (
            'mixture:laws=["zipf","uniform"],weights=[0.5,0.2]',
            r"^mixture: weights must sum to 1, but sums to 0\.7",
        ),
        (
            "mixture:laws=" + '[{"name":"mixture","laws":' * 400 + '["zipf"]' + "}]" * 400,
            r"nested too deeply",
        ),
    ],
)
def test_bad_laws_are_refused_in_one_sentence(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        as_law(text)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert not sentence.removesuffix("...").endswith(".")
    assert len(sentence) < 250


def test_a_spec_must_have_a_known_name() -> None:
    with pytest.raises(InvalidInput, match="has no name"):
        law_from_spec({"vocab": 5})
    with pytest.raises(InvalidInput, match="unknown law 7"):
        law_from_spec({"name": 7})


def test_absurd_numbers_are_refused_from_python_too() -> None:
    for value in (10**5000, -(10**5000), float("nan"), float("inf")):
        with pytest.raises(InvalidInput, match="alpha must be a finite number"):
            Dirichlet(alpha=value)
        with pytest.raises(InvalidInput, match="vocab must be a finite number"):
            Zipf(vocab=value)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="must be a number"):
        Dirichlet(alpha=1j)  # type: ignore[arg-type]
