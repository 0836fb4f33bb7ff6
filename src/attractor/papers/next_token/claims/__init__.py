"""Its claims, in the order of the text."""

ORDER = (
    "feed_forward_path",
    "feed_forward_gradient",
    "feed_forward_logits",
    "attention_gradient",
    "attention_descent",
    "attention_path",
    "closed_form",
)
