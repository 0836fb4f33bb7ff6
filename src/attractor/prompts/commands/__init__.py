"""The commands of long prompts and of in-context learning."""
