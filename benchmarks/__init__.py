"""Benchmarks: each runs both sides in one go and reports machine, settings and ratio."""
