"""Its figures, in the order of the text."""

ORDER = (
    "training",
    "rates",
    "generalization",
    "assumptions",
    "optimizers",
    "sizes",
)
