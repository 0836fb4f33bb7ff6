"""Its figures, in the order of the text."""

ORDER = (
    "directional_divergence",
    "divergence_table",
    "entry_paths",
    "joint_probabilities",
    "joint_paths",
    "text_generalization",
    "text_selection",
    "attended_words",
    "weight_sparsity",
    "vision",
)
