"""Code of users that draws random numbers: the same every time, and nobody else's are moved."""

import pickle
import random

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from made_up import DRAWING

import attractor as at
from attractor.files import Case
from attractor.geometry import Frobenius
from attractor.geometry.loading import load_geometry
from attractor.maps.bias import bias_matrix, load_method
from attractor.maps.sweeps import Grid, open_sweep, sweep
from attractor.margin.methods import methods_for, register_methods
from attractor.papers import PAPERS, Claims, Comparison, Exponent, Measurement
from attractor.papers.ledger.check import examine
from attractor.papers.max_margin.data import three_sequences
from attractor.support.threads import use_threads

MODULE = """
import random
import numpy as np
import optax
import attractor as at

SIZE = np.random.uniform(1, 2)

def noisy():
    return optax.sgd(SIZE * np.random.uniform(0.1, 0.2))

class Norm(at.Frobenius):
    name = "of_a_module"
    def __init__(self):
        self.drawn = random.random()
"""


def drawn():
    return float(np.random.normal() + random.gauss(0, 1))


class Head(eqx.Module):
    weight: jax.Array

    def __call__(self, output):
        return self.weight @ output * (1 + 0.01 * drawn())


def by_training(tmp_path):
    """Everything that ``train`` takes, as new functions, so that nothing is compiled already."""

    def update(updates, state, parameters=None):
        return jax.tree.map(lambda leaf: -0.1 * leaf + 0.01 * drawn(), updates), state

    def loss(prediction, label):
        return jnp.log1p(jnp.exp(-label * prediction)) * (1 + 0.1 * abs(drawn()))

    tokens, _ = at.datasets.unit_tokens(3, 4, 5, seeds=2)
    optimizer = at.declare(
        optax.GradientTransformation(lambda parameters: jnp.array(drawn()), update), geometry=None
    )
    run = at.train(
        tokens, Head(jnp.arange(5.0)), optimizer, steps=3, loss=loss,
        metrics={"mine": lambda seen: seen.loss * drawn()},
        stop=lambda record: record["loss"] < 0.1 * drawn(),
    )  # fmt: skip
    return [run.W(), run.data["mine"].values]


def by_the_matrix(tmp_path):
    name = f"noisy_{random.SystemRandom().randrange(10**9)}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    data = at.datasets.unit_tokens(3, 4, 5, seeds=2)
    matrix = bias_matrix(*data, methods=[load_method(f"{name}:noisy")], norms=["l_2"], steps=4)
    return [matrix.data["W"].values, np.array(load_geometry(f"{name}:Norm").drawn)]


class Estimated(Frobenius):
    """A norm that is found from random vectors, to rounding."""

    def norm(self, W):
        np.random.normal(size=3), random.random()
        return super().norm(W)


register_methods(Estimated, lambda _: (perturbed, *methods_for(Frobenius())))


def perturbed(task):
    W = np.random.normal(size=task.W.shape)
    return task.W + 1e-13 * W, task.multipliers


def by_solving(tmp_path):
    tokens, head = at.datasets.unit_tokens(3, 4, 5, seeds=6)
    problem = at.MarginProblem.from_selection(tokens, at.optimal_tokens(tokens, head))
    found = []
    for threads in (1, 3):
        with use_threads(threads):
            found += [
                at.solve(problem, Estimated()).W,
                at.solve([problem[i] for i in range(6)], methods=[perturbed])[5].W,
            ]
    return [*found, at.optimal_tokens(tokens, lambda values: values[..., 0] * drawn()).mask]


def by_a_sweep(tmp_path):
    found = []
    for number, shares in enumerate([[None], [(1, 2), (0, 2)]]):
        path = tmp_path / f"{random.SystemRandom().randrange(10**9)}-{number}"
        for share in shares:
            grid = Grid({"n": [1, 2]}, instances=4, seeds=2, chunk=4)
            sweep(grid, DRAWING, path, share=share)
        found.append(open_sweep(path)["number"].to_numpy())
    np.testing.assert_array_equal(*found)
    assert len(np.unique(found[0])) == found[0].size
    return found


def by_a_claim(tmp_path):
    def measure(case, seed, exponent):
        return Measurement(abs(drawn()))

    claim = Claims(PAPERS["max-margin"], Case).claim(
        "drawn", "what is drawn is small", statement="margin problem of the selected tokens",
        assuming=(), data=lambda seed: [three_sequences()],
        contrast=Comparison(
            "size", measure, lambda case, seed: Exponent(-1), "size again",
            lambda case, seed: Exponent(-2), bound=9.0, reason="they are normal",
        ),
    )  # fmt: skip
    values = [examine(claim, three_sequences(), seed).measured.value for seed in (0, 1, 0)]
    assert values[0] == values[2] != values[1]
    return [np.array(values)]


PLACES = [by_training, by_the_matrix, by_solving, by_a_sweep, by_a_claim]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_what_users_draw_is_the_same_and_moves_nothing(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = []
    for seed in (1, 2):
        np.random.seed(seed), random.seed(seed), drawn()
        before = random.getstate(), pickle.dumps(np.random.get_state())
        found.append(place(tmp_path))
        assert (random.getstate(), pickle.dumps(np.random.get_state())) == before
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
