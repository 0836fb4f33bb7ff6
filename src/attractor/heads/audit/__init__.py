"""Heads of pretrained transformers: what they select, whether that is more than chance, and why."""
