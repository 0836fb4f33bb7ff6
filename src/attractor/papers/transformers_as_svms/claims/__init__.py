"""Its claims, in the order of the text."""

ORDER = (
    "global_path",
    "no_stationary_point",
    "global_convergence",
    "local_convergence",
    "large_start",
    "feasible_when_wide",
    "rank",
    "norms",
    "concave_head",
    "wide_is_global",
    "key_query_training",
)
