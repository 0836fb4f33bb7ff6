"""Its figures, in the order of the text."""

ORDER = (
    "concentration",
    "gradients",
    "risk",
    "trained_models",
    "flows",
    "official_runs",
    "mixtures",
)
