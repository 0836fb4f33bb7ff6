"""Two results side by side, aligned by their labels."""
