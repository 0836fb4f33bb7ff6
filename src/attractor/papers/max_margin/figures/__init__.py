"""Its figures, in the order of the text."""

ORDER = (
    "global_and_local",
    "three_sequences",
    "joint_training",
    "losses_and_score_gaps",
    "random_data",
    "vision_transformer",
    "basins",
)
