"""What is of the wrong kind is refused by the name of its argument, with what was meant."""

import jax.numpy as jnp
import numpy as np
import pytest

import attractor as at
from attractor.analysis.rates import fit_rate
from attractor.models import Examples
from attractor.results.paper import get_paper
from attractor.support.errors import InvalidInputError
from attractor.training import registered_optimizers

TOKENS = at.Tokens(np.eye(3)[None], np.ones((1, 3)), [1])
HEAD = at.LinearHead([1.0, 0.5, 0.2])
NGD = at.normalized_gradient_descent(0.1)
TWO = np.ones((2, 2))


def train(**settings):
    return at.train(TOKENS, HEAD, NGD, **{"steps": 1, **settings})


def problem(**numbers):
    return at.MarginProblem(TWO, TWO, **numbers)


@pytest.mark.parametrize("rate", [True, "0.1", np.nan, 0, [], ["0.1"], [0.1, 0]])
@pytest.mark.parametrize("entry", registered_optimizers(), ids=lambda entry: entry.name)
def test_every_optimizer_refuses_what_is_no_learning_rate(entry, rate):
    if not entry.takes_learning_rate:
        pytest.skip("has none")
    further = {"p": 2.0, "geometry": at.Frobenius()}
    settings = {name: value for name, value in further.items() if name in entry.settings}
    with pytest.raises(InvalidInputError, match=r"^learning_rate: "):
        entry.maker(rate, **settings)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: at.verify(None), "trajectory: it is None"),
        (lambda: at.verify(at.solve(problem()), train()), "trajectory: .* Swap the two"),
        (lambda: at.verify(train(), 3), "solution: int is not Solution"),
        (lambda: train(metrics=3), "metrics: 3 is no mapping"),
        (lambda: train(metrics={"m": lambda seen: "text"}), "metrics: 'm' fails"),
        (lambda: train(metrics={"m": lambda seen: {"a": jnp.ones(1)}}), "metrics: 'm' fails"),
        (lambda: at.train(TOKENS, at.LinearHead([1.0]), NGD, steps=1), "head: .* dimension 1"),
        (lambda: at.optimal_tokens(TOKENS, at.LinearHead([1.0])), "head: .* dimension 1"),
        (lambda: at.MarginProblem.from_selection(TOKENS, [0, 1]), "selection: list is not Sel"),
        (lambda: at.MarginProblem.from_selection(None, [0, 1]), "tokens: it is None"),
        (lambda: problem(sequence="a"), "sequence: the data type"),
        (lambda: problem(query=[0.5, 1.0]), "query: the data type"),
        (lambda: problem(token=[True, False]), "token: the data type"),
        (lambda: problem(token=[-7, 0]), "token: one is -7"),
        (lambda: problem(query=[1, 2, 3]), "query: the shape"),
        (lambda: at.get_optimizer("adamm", 0.1), r"optimizer: .* Did you mean adam\?"),
        (lambda: get_paper("long-prompts"), r"paper: .* Did you mean large-prompt\?"),
        (lambda: train(loss="logisitc"), r"loss: .* Did you mean logistic\?"),
        (lambda: train(weights="al"), r"weights: .* Did you mean all"),
        (lambda: at.mirror_descent(lambda step: "x", p=2), "learning_rate: the schedule .* fails"),
        (lambda: at.mirror_descent(0.1, p=type), "p: .* is no function"),
        (lambda: at.optimal_tokens(TOKENS, type), "head: .* is no function"),
        (lambda: at.Tokens.self_attention([1.0, 2.0]), r"keys: the shape is \(2,\)"),
        (lambda: at.verify(train(), at.solve(problem()), selection=TWO), "selection: a solution"),
        (lambda: at.regularization_path(TOKENS, HEAD, radii=[1, 1e308]), "radii: .* 1e\\+308"),
        (lambda: Examples(TWO.astype(np.float16), [0, 1]), "inputs: they are float16"),
        (
            lambda: fit_rate(np.arange(1, 9), np.ones((2, 8)), excluded={"a": 1}),
            "excluded: 'a' is 1. Give booleans",
        ),
    ],
)  # fmt: skip
def test_the_argument_is_named(call, message):
    with pytest.raises(InvalidInputError, match="^" + message):
        call()
