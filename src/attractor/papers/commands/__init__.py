"""The commands of claims, of figures, and of what is run again."""
