"""Entrywise and Schatten norms with 1 < p < inf: Newton steps on the conditions for optimality."""
