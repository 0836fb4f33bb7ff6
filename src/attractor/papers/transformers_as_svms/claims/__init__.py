"""Its claims, in the order of the text."""

ORDER = (
    "smooth_gradient",
    "feasible_when_wide",
    "rank",
    "norms",
    "global_path",
    "no_stationary_point",
    "global_convergence",
    "large_start",
    "every_selection",
    "local_convergence",
    "wide_is_global",
    "key_query_training",
    "several_tokens",
    "concave_head",
    "relu_head",
)
