"""The commands of maps: basins, the bias matrix, sweeps, two results side by side."""
