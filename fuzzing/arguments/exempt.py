"""What is public and not in the table, each with its reason."""

CONTRACTS = frozenset(
    {
        "attractor.attention.losses.Loss",
        "attractor.attention.losses.MarginLoss",
        "attractor.attention.parameterization.Parameterization",
        "attractor.geometry.Geometry",
        "attractor.papers.DataSet",
        "attractor.prompt.measures.Measure",
        "attractor.attention.heads.Head",
    }
)
"""What a class of the user's derives from: abstract, and called through classes that are not."""

MADE_BY_THE_LIBRARY = frozenset()
"""Results: read by the user, made by the library alone from values that it checked. Their methods
are in the table."""

INSIDE = frozenset()
"""Called within compiled programs with traced arrays, or by the library with what it made: where
NumPy cannot look at a value, and where a check would cost every step."""
