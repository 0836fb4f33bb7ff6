"""Its figures, in the order of the text."""

ORDER = (
    "concentration",
    "phase_diagram",
    "gains",
    "gradients",
    "risk",
    "trained_models",
    "flows",
    "order_of_limits",
    "length_and_time",
    "task_families",
    "official_runs",
    "trained_products",
    "softmax_norms",
    "mixtures",
)
