"""Help texts of commands on what a file holds."""

from __future__ import annotations

from collections.abc import Mapping

from attractor.files.token_file import LAYOUT


def about_tokens(first: str) -> str:
    """A help text that ends with the layout of a token file."""
    return (
        f"{first}\n\nFILE is a .npz or .safetensors file. It holds arrays, in floating point "
        "of any width where nothing else is said, and texts: arrays without axes in .npz, metadata "
        "in .safetensors.\n\n\b\n"
        + layout_table(LAYOUT)
        + "\n\nEvery array but the last two may have "
        "one leading axis of instances: data sets treated side by side. With K queries a sequence, "
        "queries, labels, mask, rows and selection have an axis for them behind that of sequences, "
        "and scores may. Where there are values, the head has their dimension v. "
        "Options override what the file says. "
        "`attractor example tokens tokens.npz` writes such a file. Exit codes: 0 done, "
        "2 bad input, 3 infeasible, 130 interrupted."
    )


def layout_table(layout: Mapping[str, tuple[str, str]]) -> str:
    """The entries of a file with their shapes and what they are, a line each."""
    width = max(map(len, layout))
    shapes = max(len(shape) for shape, _ in layout.values())
    return "\n".join(
        f"{name:<{width}}  {shape:<{shapes}}  {what}" for name, (shape, what) in layout.items()
    )
