"""Its figures, in the order of the text."""

ORDER = (
    "global_and_local",
    "three_sequences",
    "joint_training",
    "losses_and_score_gaps",
    "attention_sparsity",
    "vision_transformer",
)
