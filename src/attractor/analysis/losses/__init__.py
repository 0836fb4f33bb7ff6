"""Losses near their least value: what is left, whether it is finite, and how smooth."""
