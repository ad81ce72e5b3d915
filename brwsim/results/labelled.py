"""A result as an xarray dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from brwsim.errors import InvalidInput, missing
from brwsim.results import schema
from brwsim.results.result import Result

if TYPE_CHECKING:
    import xarray


def to_xarray(result: Result) -> xarray.Dataset:
    """The curve and its bounds, labelled as in the result file."""
    try:
        import xarray
    except ImportError:
        raise InvalidInput(f"to_xarray needs xarray; {missing('xarray', 'xarray')}") from None
    dimension = schema.DIMENSION
    variables = {
        name: (dimension, getattr(result, name), {"long_name": long_name, "units": units})
        for name, (long_name, units) in schema.VARIABLES.items()
    }
    values = result.bounds_in_domain()
    for bound in result.bound_objects:
        attributes = {"long_name": bound.formula, "units": "tokens per call", "kind": bound.kind}
        variables[schema.BOUND_PREFIX + bound.name] = (dimension, values[bound.name], attributes)
    dataset_attributes: dict[str, Any] = {
        schema.ATTR_SPEC: result.spec.to_json(),
        schema.ATTR_SPEC_ID: result.spec.spec_id,
        schema.ATTR_SEED: result.seed,
        schema.ATTR_ESTIMATOR: result.estimator,
        schema.ATTR_TREES: result.trees,
        **result.moments,
    }
    return xarray.Dataset(variables, coords={dimension: result.P}, attrs=dataset_attributes)
