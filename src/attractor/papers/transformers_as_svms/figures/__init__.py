"""Its figures, in the order of the text."""

ORDER: tuple[str, ...] = ()
