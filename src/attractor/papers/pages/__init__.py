"""Pages of claims and of figures."""
