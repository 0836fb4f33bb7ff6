"""Its claims, in the order of the text."""

ORDER = ("no_stationary_point",)
