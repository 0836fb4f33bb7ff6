"""Long prompts: attention as an operator on the law of its tokens."""
