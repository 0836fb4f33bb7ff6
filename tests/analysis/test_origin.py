import numpy as np
import pytest

import attractor as at
from attractor.analysis.predictions.reference import check_about
from attractor.analysis.predictions.trained import Trained
from attractor.datasets import unit_tokens
from attractor.margin.selection import Selection

TOKENS = unit_tokens(3, 4, 6, seeds=range(2))[0][0]
MASK = np.ones((3, 1, 4), bool)
MASK[1, 0, 3] = False


def remade(**fields):
    given = {name: getattr(TOKENS, name) for name in ("keys", "queries", "labels", "mask")}
    return at.Tokens(**(given | fields))


def problem_of(tokens, index=(0, 1, 2)):
    return at.MarginProblem.from_selection(tokens, Selection.from_index(tokens, list(index)))


@pytest.mark.parametrize(
    "tokens",
    [
        TOKENS,
        remade(values=TOKENS.values[..., ::-1]),  # values bear on the head alone
        remade(mask=MASK),
        at.Tokens.causal(np.random.default_rng(0).standard_normal((3, 4, 6)), np.ones((3, 4))),
    ],
)
def test_problems_of_these_tokens_are_known(tokens):
    index = np.zeros(tokens.mask.shape[:-1], int)
    selection = Selection.from_index(tokens, index[..., 0] if index.shape[-1] == 1 else index)
    problem = at.MarginProblem.from_selection(tokens, selection)
    check_about(problem, tokens, Trained())
    relaxed = at.relaxed_problem(tokens, selection, np.arange(index.size).reshape(index.shape) > 0)
    check_about(relaxed, tokens, Trained())


def test_equalities_and_rounded_differences_are_known():
    mask = np.zeros((3, 1, 4), bool)
    mask[:, :, :2] = True
    tied = Selection(mask, np.ones((3, 1), bool))
    check_about(at.MarginProblem.from_selection(TOKENS, tied, ties="equal"), TOKENS, Trained())
    check_about(problem_of(TOKENS), remade(keys=TOKENS.keys * (1 + 2**-52)), Trained())


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (unit_tokens(3, 4, 6, seeds=range(2))[0][1], "other vectors at sequence 0, query 0"),
        (remade(keys=2 * TOKENS.keys), "other vectors"),
        (remade(queries=TOKENS.queries * [[[1]], [[1]], [[-1]]]), "at sequence 2, query 0"),
        (remade(mask=MASK), "about a token that is masked at sequence 1, query 0, token 3"),
    ],
)
def test_problems_of_other_tokens_are_refused(other, words):
    with pytest.raises(at.InvalidInputError, match=f"^solution: .*other data.*{words}"):
        check_about(problem_of(TOKENS), other, Trained())


def test_a_problem_that_asks_too_little_is_refused():
    with pytest.raises(at.InvalidInputError, match="nothing about token 3 of sequence 1, query 0"):
        check_about(problem_of(remade(mask=MASK)), TOKENS, Trained())


def test_rows_that_name_no_tokens_are_refused():
    problem = problem_of(TOKENS)
    by_hand = at.MarginProblem(problem.left, problem.right, selection=problem.selection)
    with pytest.raises(at.InvalidInputError, match="do not say which tokens"):
        check_about(by_hand, TOKENS, Trained())
