"""Calls of ``attractor.explorer``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import attractor as at
from attractor import explorer
from fuzzing.arguments import examples as ex
from fuzzing.arguments.table import Call, Fresh, Lazy

_KEYS = np.random.default_rng(1).normal(size=(2, 3, 2))
TOKENS = Lazy(lambda: at.Tokens.prompt_vector(_KEYS, [1, -1]))
HEAD = Lazy(lambda: at.LinearHead([1.0, 0.5]))
STATE = Lazy(lambda: explorer.state_of(TOKENS.value, HEAD.value, steps=3))
EXPLORER = Fresh(lambda: explorer.Explorer(STATE.value))


def calls() -> Iterator[Call]:
    """One call of each."""
    given = {
        "tokens": TOKENS, "head": HEAD, "optimizer": ex.STEP, "steps": 3, "start": [0.1, 0.2],
        "selection": [0, 1],
        "takes": {"optimizer": "text none", "parameterization": "text none", "start": "array none",
                  "norm": "text none geometry", "selection": "array none sequence",
                  "kernel": "text", "projection": "text"},
        "blames": {
            "tokens": "parameterization selection start", "parameterization": "start selection",
            "optimizer": "learning_rate",
        },
        "skip": {"projection": "tokens of two numbers need none"},
    }  # fmt: skip
    yield Call(explorer.explorer_page, **given)
    yield Call(explorer.state_of, **given)
    yield Call(explorer.check_state, state=STATE, blames={"state": "state.version"})
    yield Call(explorer.scene_named, name="two-basins", blames={"name": "scene"})
    yield Call(explorer.Explorer, state=STATE, blames={"state": "state.version"})
    yield Call(explorer.Explorer.train, self=EXPLORER, number=0)
    yield Call(explorer.Explorer.save, self=EXPLORER, path="page.html", title="Tokens")
