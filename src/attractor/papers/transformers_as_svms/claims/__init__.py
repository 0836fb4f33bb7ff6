"""Its claims, in the order of the text."""

ORDER = (
    "global_path",
    "no_stationary_point",
    "global_convergence",
    "local_convergence",
)
