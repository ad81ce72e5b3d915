"""How much of a node goes to its first children: E[p_j] and E[-p_j ln p_j], child by child.

Rank is the order in which a law hands out its children: by probability where the law is a fixed row,
size-biased (the first is the token the target model itself would sample) where it breaks a stick.
"""

from __future__ import annotations

import numpy as np

from brwsim.process.base import Floats, KernelRow, Law, Logits, Sticks


def rank_moments(law: Law, classes: int) -> tuple[Floats, Floats]:
    """Expected share and expected -p ln p of children 1, ..., classes - 1, and of all the others together.

    Both arrays have shape (classes,); they sum to 1 and to the law's entropy.
    """
    shares = np.zeros(classes)
    entropies = np.zeros(classes)
    for weight, row in law.rows():
        row_shares, row_entropies = _first(row, classes - 1)
        shares[: classes - 1] += weight * row_shares
        entropies[: classes - 1] += weight * row_entropies
    shares[-1] = 1.0 - shares[:-1].sum()
    entropies[-1] = law.mu - entropies[:-1].sum()
    return shares, entropies


def _first(row: KernelRow, count: int) -> tuple[Floats, Floats]:
    if isinstance(row, Sticks):
        return _first_sticks(row, count)
    shares = np.zeros(count)
    if isinstance(row, Logits):  # no order, so that processes refuse to ask for any rank
        return shares, shares
    listed = np.concatenate([row.probs[:count], np.full(min(row.tail_count, count), row.tail_prob)])[:count]
    shares[: listed.size] = listed
    logs = np.log(shares, where=shares > 0.0, out=np.zeros(count))
    return shares, -shares * logs


def _first_sticks(row: Sticks, count: int) -> tuple[Floats, Floats]:
    """p_j = W_j times the product of 1 - W_i, i < j, all independent Beta: logarithms add up."""
    shares = np.zeros(count)
    entropies = np.zeros(count)
    left, left_entropy = 1.0, 0.0  # E[rest] and E[-rest ln rest]
    for j in range(count):
        a, b = 1.0 - row.discount, row.strength + (j + 1) * row.discount
        if b <= 0.0:  # the last of finitely many takes all that is left
            shares[j], entropies[j] = left, left_entropy
            break
        taken, taken_entropy = _beta_moments(a, b)
        kept, kept_entropy = _beta_moments(b, a)
        shares[j] = left * taken
        entropies[j] = left_entropy * taken + left * taken_entropy
        left, left_entropy = left * kept, left_entropy * kept + left * kept_entropy
    return shares, entropies


def _beta_moments(a: float, b: float) -> tuple[float, float]:
    """E[W] and E[-W ln W] of a Beta(a, b) variable."""
    from scipy.special import digamma

    mean = a / (a + b)
    return mean, mean * float(digamma(a + b + 1.0) - digamma(a + 1.0))
