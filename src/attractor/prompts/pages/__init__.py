"""Pages of long prompts and of in-context learning."""
