"""Image classifiers: handwritten digits for a vision transformer."""
