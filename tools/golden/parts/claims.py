"""Outcome, value and control of the papers' claims at seed 0, as the command says them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from tools.golden.collect import command

LONG = {
    "max-margin": (
        "global-path local-convergence local-path joint-path relaxed-joint-path-at-any-rates "
        "several-optimal-tokens-path finite-offset"
    ),
    "transformers-as-svms": (
        "global-path key-query-path sequence-path global-convergence good-first-gradient "
        "only-local-optima-attract wide-is-global key-query-training several-tokens "
        "relu-head-training"
    ),
    "mirror-descent": (
        "step-identity descent regularization-path local-convergence stays-in-cone rate "
        "joint-path relaxed-joint-path joint-endpoints joint-directions text-generalization "
        "vision-accuracy text-selection vision-sparsity weight-sparsity"
    ),
    "next-token": (
        "feed-forward-exact feed-forward-direction-bound logit-gaps-from-above "
        "optimal-attention-grows attention-norm"
    ),
    "mechanics": "conflicts-leave-a-finite-part conflicts-leave-the-direction",
    "linear-next-token": "descent-of-decoders",
    "multiclass-descent": (
        "margin-of-sign-descent margin-of-normalized-descent margin-of-spectral-descent "
        "margin-of-sign-momentum margin-of-normalized-momentum margin-of-muon margin-of-adam"
    ),
    "associative-memory": "first-step-of-muon-is-balanced",
    "large-prompt": (
        "sub-gaussian-output-concentration sub-gaussian-score-gradient-concentration "
        "sub-gaussian-score-gradient-concentration-repaired general-risk-limit "
        "general-trajectory-stability trajectory-stability trained-risk-limit risk-falls "
        "parameter-limit fixed-value-limit trained-limit"
    ),
    "gaussian-mixtures": (
        "discriminant-saddles discriminant-local-convergence discriminant-global-convergence"
    ),
}
"""Claims that take long, or need what takes long; only `--whole` takes them, and folklore."""


def claims(whole: bool = False, **_: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Each claim by its name."""
    for name in sorted(command("claims")["claims"]):
        paper, _, short = name.partition("/")
        if whole or (paper != "folklore" and short not in LONG.get(paper, "").split()):
            yield name, functools.partial(_claim, name)


def _claim(name: str) -> Any:
    """The outcome, and for each data set the numbers behind it."""
    (found,) = command("claims", name)["claims"].values()
    kept = ("outcome", "assumptions", "measured", "negative_control")
    data = [{key: one.get(key) for key in kept} for one in found["data"]]
    return {"outcome": found["outcome"], "data": data}


ADAPTERS = {"claim": claims}
WITH_OPTIONS = {"claim"}
