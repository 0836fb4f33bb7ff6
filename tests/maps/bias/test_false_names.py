"""No norm is named of steps whose own norm is not among those compared, or that have none."""

import functools

import jax
import jax.numpy as jnp
import optax
import pytest

from attractor.datasets import unit_tokens
from attractor.maps.bias import Method, bias_matrix, standard_methods
from attractor.training import declare

STEPS, STEP = 1500, 3.0


def _direction(step):
    """A transformation of the negative step in the one array there is."""

    def update(gradient, state, params=None):
        return jax.tree.map(lambda slope: -step(slope), gradient), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


def entrywise(learning_rate, exponent):
    """Steepest in l_p."""

    def step(slope):
        power = jnp.abs(slope / jnp.abs(slope).max()) ** (1 / (exponent - 1))
        size = (power**exponent).sum() ** (1 / exponent)
        return learning_rate * jnp.sign(slope) * power / size

    return _direction(step)


def of_singular_values(learning_rate, exponent, subtracted):
    """Steepest in Schatten p; with a multiple of the gradient taken off, in no norm."""

    def step(slope):
        left, values, right = jnp.linalg.svd(slope, full_matrices=False)
        values = values / values[0]
        power = values ** (1 / (exponent - 1))
        power = power / (power**exponent).sum() ** (1 / exponent) - subtracted * values
        return learning_rate * (left * power) @ right

    return _direction(step)


def method(factory, **numbers):
    """A row of which nothing is known but its steps; all of a factory are one program."""
    given = {"learning_rate": STEP, **numbers}
    optimizer = declare(
        factory, hyperparameters=given, geometry=None, gradient_scale="global", name="steps"
    )
    return Method(f"{factory.__name__} {numbers}", optimizer)


def between(ends, counts):
    """Exponents evenly in 1 / p between those compared."""
    for low, high, count in zip(ends, ends[1:], counts, strict=False):
        for place in range(1, count + 1):
            yield 1 / (low + (high - low) * place / (count + 1))


ENTRYWISE = [*between((1, 1 / 1.75, 1 / 2, 1 / 3, 0), (6, 3, 5, 6))]
SCHATTEN = [*between((1, 1 / 2, 0), (10, 10))]
OF_ENTRIES = [method(entrywise, exponent=p) for p in ENTRYWISE]
schatten = functools.partial(method, of_singular_values, subtracted=0.0)
OF_VALUES = [schatten(exponent=p) for p in SCHATTEN]
# exponent 1e9: all singular values alike, as Muon's
WITHOUT_NORM = [
    method(of_singular_values, exponent=1e9, subtracted=a) for a in (0.02, 0.05, 0.1, 0.3)
]


def names(rows, seed=0, count=12, steps=STEPS):
    """What is named of each row."""
    data = unit_tokens(6, 8, 10, seeds=range(seed, seed + count))
    found = bias_matrix(*data, methods=rows, steps=steps)
    return {row.name: found.answer(row.name).norm for row in rows}


@pytest.mark.long
def test_of_norms_beside_those_compared():
    # Schatten 2.5 and 3, l_1.9, l_2.25: their ratios in the nearest norm are .98 to .997.
    rows = [schatten(exponent=p) for p in (2.5, 3.0)]
    rows += [method(entrywise, exponent=p) for p in (1.9, 2.25)]
    assert not any(names([*rows, WITHOUT_NORM[0]]).values())


@pytest.mark.long
def test_true_names_are_given():
    wanted = {"normalized GD": "frobenius", "spectral descent": "spectral", "sign descent": "l_inf"}
    rows = [row for row in standard_methods("quick") if row.name in wanted]
    assert names(rows) == wanted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "count", "steps"),
    [(1000, 12, 1500), (2000, 12, 1500), (3000, 12, 1500), (4000, 20, 6000), (5000, 20, 6000)],
)
def test_of_forty_exponents(seed, count, steps):
    rows = [*OF_ENTRIES, *OF_VALUES, *WITHOUT_NORM]
    assert not {row: norm for row, norm in names(rows, seed, count, steps).items() if norm}
