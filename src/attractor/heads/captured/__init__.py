"""What was captured of heads: their scores, keys and queries on texts, and its file."""
