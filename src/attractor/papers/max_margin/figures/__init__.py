"""Its figures, in the order of the text."""

ORDER = ("global_and_local",)
