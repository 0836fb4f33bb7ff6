"""Help texts: examples, what a file holds, exit codes. All stand behind the options."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from attractor.files.token_file import LAYOUT

EXAMPLES = {
    "demo": {"attractor demo": 7},
    "check": {
        "attractor check tokens.npz": 4,
        "attractor check tokens.npz --steps 20000 --out check-report": 7,
    },
    "corpus": {
        "attractor corpus corpus.txt --train": 4,
        "attractor corpus text.txt --vocabulary 50 --context 3 --train": 34,
    },
    "audit": {
        "attractor audit heads.nc --out audit-report": 11,
        "attractor audit heads.nc --control": 65,
        "attractor audit MODEL_FOLDER texts.txt --out audit-report": 120,
    },
    "prompt-length": {"attractor prompt-length head.npz --error 0.1": 2},
    "solve": {
        "attractor solve tokens.npz": 1,
        "attractor solve tokens.npz --norm nuclear --certificate W.json": 2,
    },
    "train": {"attractor train tokens.npz --optimizer md-1.75 --out run.nc": 3},
    "verify": {"attractor verify run.nc --out verify-report": 4},
    "matrix": {
        "attractor matrix": 6,
        "attractor matrix --optimizer optax:adam --lr 0.01 --lr 0.1": 6,
        "attractor matrix --optimizer torch.optim:SGD": 25,
        "attractor matrix --optimizer mine:signs --norm mine:RowNorm": 4,
    },
    "basins": {
        "attractor basins tokens.npz": 4,
        "attractor basins tokens.npz --map --out basins": 10,
    },
    "explore": {
        "attractor explore tokens.npz --out tokens.html": 3,
        "attractor explore --scene two-basins": 1,
    },
    "in-context": {"attractor in-context --lengths 64,256,1024,inf --out in-context-report": 14},
    "sweep": {
        "attractor sweep plan.toml --store plan.zarr": 7,
        "attractor sweep status plan.zarr": 1,
    },
    "claims": {
        "attractor claims transformers-as-svms/rank": 4,
        "attractor claims --data tokens.npz": 29,
        "attractor claims --of max-margin --out claims-report": 29,
    },
    "figures": {"attractor figures max-margin/global-and-local --out figures": 4},
    "compare": {"attractor compare report other-report": 3},
    "reproduce": {"attractor reproduce report/report.html --data tokens.npz": 6},
    "example": {"attractor example tokens tokens.npz": 1},
}
"""Examples of every command, with the seconds that they took on two quiet cores."""


def ending(command: str, *paragraphs: str) -> str:
    """What stands below the options of a command: its examples, then the rest."""
    width = max(map(len, EXAMPLES[command]))
    lines = [f"{line:<{width}}  {seconds} s" for line, seconds in EXAMPLES[command].items()]
    examples = "Examples, with the time they take on two cores:\n\n\b\n" + "\n".join(lines)
    return "\n\n".join([examples, *paragraphs])


def about_tokens(command: str, *paragraphs: str) -> str:
    """The same with the layout of a token file."""
    return ending(
        command,
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
