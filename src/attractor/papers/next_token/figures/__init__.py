"""Its figures, in the order of the text."""

ORDER = (
    "collocations_and_orders",
    "training",
    "mechanics_global",
    "mechanics_local",
    "linear_two_dimensional",
    "linear_overparameterized",
)
