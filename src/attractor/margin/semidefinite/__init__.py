"""The nuclear and the spectral norm: smoothed conditions for optimality, in singular bases."""
