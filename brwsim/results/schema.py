"""The layout of a result file; docs/file-format.md describes it for readers in other languages."""

from __future__ import annotations

FILETYPE = "brwsim sweep"
SCHEMA_VERSION = (1, 0)  # readers refuse another major; a minor only adds

# Root attributes
ATTR_FILETYPE = "filetype"
ATTR_SCHEMA = "schema_version"
ATTR_SPEC = "spec_json"
ATTR_SPEC_ID = "spec_id"
ATTR_SEED = "seed"
ATTR_ESTIMATOR = "estimator"
ATTR_TREES = "trees"
ATTR_MU = "mu"
ATTR_MU2 = "mu2"
ATTR_FIXED = "is_fixed"
ATTR_PROVENANCE = "provenance_json"

# Finished blocks, one group per tier: /blocks/tier0/keys (n, 3) and /blocks/tier0/moments (n, 5, reach)
BLOCKS = "blocks"
KEYS = "keys"
KEY_COLUMNS = ("seed", "index", "trees")
MOMENTS = "moments"
MOMENT_NAMES = ("mean_x", "mean_c", "m_xx", "m_xc", "m_cc")

DIMENSION = "P"
BOUND_PREFIX = "bound_"
VARIABLES = {
    "mean": ("expected tokens per verifier call, E[X]", "tokens per call"),
    "stderr": ("standard error of mean", "tokens per call"),
    "variance_ratio": ("variance of the crude mean over that of mean", "1"),
    "trees_per_P": ("trees that reach P", "1"),
}
