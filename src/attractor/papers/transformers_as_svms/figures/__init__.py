"""Its figures, in the order of the text."""

ORDER = (
    "paths",
    "separating_lines",
    "rank",
    "local_convergence",
    "global_selection",
    "convergence_types",
    "key_query_width",
    "several_tokens",
    "concave_head",
)
