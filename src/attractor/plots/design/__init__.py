"""The style of every figure: colors, dashes, sizes, arguments, descriptions."""
