"""Results of the same sweep, put together: a union of blocks, never a sum of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from brwsim.engine.rules import BlockKey
from brwsim.errors import InvalidInput
from brwsim.estimate import BlockStats
from brwsim.results.result import Result


def merge(results: Sequence[Result]) -> Result:
    """Combine results of one sweep, run with one or several seeds.

    Blocks in several results must agree and count once: merging a result with itself changes nothing.
    Of a block cut short and the same block whole, the whole one is kept. Results with different
    estimators are summarised with the control variate.

    Parameters
    ----------
    results : sequence of Result
        At least one; all with the same ``spec_id``.

    Raises
    ------
    InvalidInput
        When there is nothing to merge, the sweeps differ, or the same block has different contents.
    """
    if not results:
        raise InvalidInput("nothing to merge: give at least one result")
    spec = results[0].spec
    union: dict[BlockKey, BlockStats] = {}
    for result in results:
        if result.spec.spec_id != spec.spec_id:
            raise InvalidInput(
                f"cannot merge different sweeps: {_name(result)} is {result.spec} at P={result.spec.grid}, "
                f"{_name(results[0])} is {spec} at P={spec.grid}"
            )
        for key, block in result.blocks.items():
            known = union.get(key)
            if known is None or known.trees < block.trees:
                union[key] = block
            elif known.trees == block.trees and not known.agrees_with(block):
                raise InvalidInput(
                    f"block {key.index} of tier {key.tier}, seed {key.seed}, differs in {_name(result)}: "
                    "one of the files was not made by this version of brwsim from the same inputs"
                )
    estimator = results[0].estimator if len({result.estimator for result in results}) == 1 else "control"
    return replace(results[0], estimator=estimator, blocks=dict(sorted(union.items())), path=None)


def _name(result: Result) -> str:
    return str(result.path) if result.path else "a result in memory"
