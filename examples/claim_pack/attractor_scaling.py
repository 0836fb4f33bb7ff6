"""How margin solutions scale with the tokens: a pack of one claim."""

import numpy as np

from attractor.papers import Case, Exponent, Ledger, Paper, assumption, draws
from attractor.tokens import Tokens

PAPER = Paper("scaling", "How margin solutions scale with the tokens")
claim = Ledger(PAPER, Case)


def random_keys(seed):
    """Three sequences of four tokens, the first of each the best."""
    keys = np.random.default_rng(seed).standard_normal((3, 4, 6))
    return Case.from_scores(keys, np.tile([1.0, 0, 0, 0], (3, 1)), about=f"keys, seed {seed}")


def longer(case, factor):
    """The same tokens, with keys that are longer by a factor."""
    tokens = case.tokens
    keys = Tokens(factor * tokens.keys, tokens.queries, tokens.labels, values=tokens.values)
    return case.replace(tokens=keys)


@assumption("feasible", lambda: Case.from_scores([[[0.5], [1], [0]]], [[1.0, 0, 0]]))
def feasible(case):
    """Some matrix gives the best token of each row the largest score."""
    norm = case.solution().value
    return np.isfinite(norm), f"the least norm is {norm:.3g}"


@claim(
    "inverse-norm",
    "the margin solution of longer keys is shorter in proportion",
    given=[feasible],
    right=Exponent(-1),
    wrong=Exponent(-1.25),
    at_most=1e-7,
    because="both norms are certified to a relative gap of 1e-9",
    on=draws(3, random_keys),
)
def distance_of_slope(case, exponent):
    """Distance from {} of the exponent of the norm of the solution in the length of keys."""
    ratio = longer(case, 3).solution().value / case.solution().value
    slope = np.log(ratio) / np.log(3)
    return abs(slope - exponent), {"exponent": float(slope)}
