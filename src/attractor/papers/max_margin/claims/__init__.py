"""Its claims, in the order of the text."""

ORDER = (
    "matrix_and_prompt_equivalence",
    "optimal_tokens_minimize_loss",
    "global_path",
    "no_stationary_point",
    "global_convergence",
    "local_convergence",
    "local_path",
    "joint_path",
    "several_optimal_tokens",
    "selected_direction",
    "rates",
    "finite_offset",
)
