"""Its claims, in the order of the text."""

ORDER = (
    "feed_forward_path",
    "feed_forward_gradient",
    "feed_forward_logits",
    "attention_gradient",
    "optimal_attention",
    "attention_descent",
    "attention_path",
    "attention_loss",
    "closed_form",
    "generalization",
    "conflicting_labels",
    "linear_decoders",
    "linear_descent",
)
