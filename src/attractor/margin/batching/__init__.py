"""Many instances at once, each with the bits it has alone."""
