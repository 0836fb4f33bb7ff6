"""Help texts: examples, what a file holds, exit codes. All stand behind the options."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from attractor.files.token_file import LAYOUT


def about_tokens(*paragraphs: str) -> tuple[str, ...]:
    """Paragraphs of help, and the layout of a token file below them."""
    return (
        *paragraphs,
        "FILE is a .npz or .safetensors file. It holds arrays, in floating point of any "
        "width where nothing else is said, and texts: arrays without axes in .npz, metadata in "
        ".safetensors.",
        layout_block(LAYOUT),
        "Every array but the last two may have one leading axis of instances: data sets treated "
        "side by side. With K queries a sequence, queries, labels, mask, rows and selection have "
        "an axis for them behind that of sequences, and scores may. Where there are values, the "
        "head has their dimension v. Options override what the file says. "
        "`attractor example tokens tokens.npz` writes such a file. Exit codes: 0 done, "
        "2 bad input, 3 infeasible, 130 interrupted.",
    )


def layout_block(layout: Mapping[str, tuple[str, str]]) -> str:
    """The entries of a file as a paragraph of help that keeps its lines."""
    return "\b\n" + "\n".join(layout_lines(layout))


def layout_lines(layout: Mapping[str, tuple[str, str]]) -> list[str]:
    """The entries of a file with their shapes and what they are, in 76 columns."""
    name, shape = max(map(len, layout)), max(len(one) for one, _ in layout.values())
    return [
        line
        for entry, (dimensions, what) in layout.items()
        for line in textwrap.wrap(
            f"{entry:<{name}}  {dimensions:<{shape}}  {what}",
            76,
            subsequent_indent=" " * (name + shape + 4),
        )
    ]
