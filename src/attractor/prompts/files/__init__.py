"""The files of heads with laws of tokens, of in-context tasks, of regression tasks."""
