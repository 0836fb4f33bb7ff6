"""What a token file may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attractor.attention import Parameterization

LAYOUT = {
    "keys": ("(n, T, d)", "the tokens of n sequences, T each, d numbers per token"),
    "queries": ("(n, e)", "the query of each sequence; not needed where a prompt is trained"),
    "labels": ("(n,)", "-1 or +1 for each sequence"),
    "head": ("(d,)", "optional: the fixed linear head v that reads what attention returns"),
    "scores": ("(n, T)", "in place of labels and head: the score of every token"),
    "values": ("(n, T, v)", "optional: what attention averages, where it is not the keys"),
    "mask": ("(n, T)", "optional, bool: False where a token is padding"),
    "parameterization": ("text", "optional: what is trained: W, KQ, p, or (v, W) and so on"),
    "initial": ("(d, e)", "optional: where W starts, or (d,) where p does; default: random"),
    "initial_K": ("(d, d)", "optional, with initial_Q: where K and Q start"),
    "initial_Q": ("(e, d)", "optional, with initial_K"),
    "initial_head": ("(v,)", "in place of head: where the head starts if it is trained too"),
    "selection": ("(n,)", "optional, integers: which tokens to keep; else the best ones"),
    "optimizer": ("text", "optional: how to train, such as ngd:learning_rate=0.1"),
    "steps": ("()", "optional, an integer: how long to train"),
    "instance_numbers": ("(instances,)", "optional: the numbers of several data sets"),
}
"""What a token file may hold: for each entry its shape and what it means.

Every array but the last two may have one leading axis of instances: data sets treated side by
side. With several queries a sequence, ``queries``, ``labels``, ``mask`` and ``selection`` have an
axis for them behind that of sequences; ``scores`` may have one. Where ``values`` are given, the
head has their dimension. A ``selection`` of truth values for every token may keep several a row.
"""

TEXTS = ("parameterization", "optimizer")
"""The entries that are texts: arrays without axes in ``.npz``, metadata in ``.safetensors``."""

SUFFIXES = (".npz", ".safetensors")
"""The endings of token files."""

STARTS = ("initial", "initial_K", "initial_Q")
"""The arrays that say where attention starts."""


def start_names(trained: tuple[str, ...]) -> dict[str, str]:
    """The array in a file for each array that is trained: ``initial`` for a single one."""
    if len(trained) == 1:
        return {trained[0]: "initial"}
    return {name: f"initial_{name}" for name in trained}


def trains_prompt(layer: Parameterization) -> bool:
    """Whether a prompt is trained, so that queries mean nothing."""
    return set(layer.shapes(1, 1)) == {"p"}
