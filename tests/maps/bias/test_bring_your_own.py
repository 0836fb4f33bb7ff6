import optax
import pytest

from attractor.maps.bias import as_method, load_method, named_optimizer
from attractor.support.errors import InvalidInputError
from attractor.training import Optimizer, gradient_descent, sign_descent

MODULE = """
import jax
import jax.numpy as jnp
import optax

import attractor as at

LIMIT = 3

def signs():
    return optax.sign_sgd(0.1)

def normalized():
    def update(updates, params=None):
        size = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(updates)))
        return jax.tree.map(lambda leaf: -0.3 * jnp.where(size > 0, leaf / size, 0), updates)
    return optax.stateless(update)

def adam():
    return optax.adam(0.1)

def with_rate(lr=0.25):
    return optax.sgd(lr)

def declared():
    return at.normalized_gradient_descent(0.3)

def unnamed():
    return at.declare(optax.sgd(0.1), geometry="frobenius")

def raises():
    raise RuntimeError("no such thing")

def raises_later():
    def update(updates, params=None):
        raise RuntimeError("not today")
    return optax.stateless(update)

def misshapen():
    return optax.stateless(lambda updates, params=None: jax.tree.map(jnp.sum, updates))

def number():
    return 3

def greedy(a, b):
    return None
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    name = f"optimizers_of_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return name


def test_what_is_homogeneous_runs_exactly_at_every_magnitude(module):
    signs, normalized = load_method(f"{module}:signs"), load_method(f"{module}:normalized")
    assert "follow each entry" in signs.reads
    assert "follow the gradient" in normalized.reads
    scales = [method.optimizer.gradient_scale for method in (signs, normalized)]
    assert scales == ["log_per_entry", "log_per_array"]


def test_what_is_declared_without_a_name_has_that_of_its_factory(module):
    assert load_method(f"{module}:unnamed").optimizer.name == f"{module}:unnamed"


def test_what_is_not_is_given_true_magnitudes(module):
    adam = load_method(f"{module}:adam")
    assert adam.optimizer.gradient_scale == "absolute"
    assert "true magnitudes" in adam.reads
    assert adam.own_norm is None


def test_an_optimizer_keeps_its_declaration(module):
    declared = load_method(f"{module}:declared", parameterization="KQ")
    assert isinstance(declared.optimizer, Optimizer)
    assert declared.own_norm.name == "nuclear"


@pytest.mark.parametrize(
    ("spelling", "reads"),
    [
        ("gd", "magnitude of the gradient"),
        ("ngd", "direction of the gradient"),
        ("spectral", "direction of each array of the gradient"),
        ("sign", "sign of each entry of the gradient"),
        ("ngd:eps=1e-9", "gradient with the logarithm of its scale"),
        ("adam", "gradient with the logarithm of the scale of each entry"),
    ],
)
def test_how_an_optimizer_is_given_gradients_is_said_in_words(spelling, reads):
    assert load_method(spelling).reads == reads


def test_names():
    assert load_method("md:p=1.5").optimizer.settings["learning_rate"] == 0.1
    assert load_method("md:p=1.5", learning_rate=0.7).own_norm.name == "l_1.5"
    assert load_method("polyak").optimizer.name == "Polyak step"
    assert load_method("ngd:learning_rate=3").optimizer.settings["learning_rate"] == 3
    assert load_method("gd:learning_rate=3", learning_rate=2).optimizer is gradient_descent(2)
    with pytest.raises(InvalidInputError, match="learning_rate"):
        load_method("gd", learning_rate=0.0)


def test_a_factory_is_given_a_learning_rate_if_it_takes_one(module):
    needs_one = load_method("optax:sgd")
    assert needs_one.step_size == 0.1 and needs_one.with_step_size(2.0).step_size == 2
    assert load_method("optax:sgd", learning_rate=3).step_size == 3
    own = load_method(f"{module}:with_rate")
    assert own.step_size == 0.25 and own.with_step_size(0.5).step_size == 0.5
    none = load_method(f"{module}:adam")
    assert none.step_size is None and none.with_step_size is None
    assert load_method("gd:learning_rate=3").with_step_size(2.0).step_size == 2
    with pytest.raises(InvalidInputError, match="takes none, neither as learning_rate nor as lr"):
        load_method(f"{module}:adam", learning_rate=0.1)


def test_a_name_alone_imports_nothing(module):
    with pytest.raises(InvalidInputError, match="none is called"):
        named_optimizer(f"{module}:signs")


def test_the_folder_is_left_out_of_the_path_again(module, tmp_path):
    import sys

    load_method(f"{module}:declared")
    assert str(tmp_path) not in sys.path


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        ("raises", "RuntimeError: no such thing"),
        ("raises_later", "RuntimeError: not today"),
        ("misshapen", "shapes"),
        ("number", "is a int"),
        ("greedy", "needs 2 arguments"),
        ("missing", "has no 'missing'"),
        ("LIMIT", "cannot be called"),
    ],
)
def test_factories_that_will_not_do(module, factory, words):
    with pytest.raises(InvalidInputError, match="optimizer") as caught:
        load_method(f"{module}:{factory}")
    assert words in str(caught.value)


def test_modules_that_will_not_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken_optimizers.py").write_text("1 / 0")
    with pytest.raises(InvalidInputError, match="ZeroDivisionError"):
        load_method("broken_optimizers:signs")
    with pytest.raises(InvalidInputError, match="cannot be imported"):
        load_method("nowhere.to.be.found:signs")
    with pytest.raises(InvalidInputError, match="none is called"):
        load_method("no such optimizer")


def test_without_torch_a_factory_of_parameters_is_refused(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "attractor.torch", None)
    with pytest.raises(InvalidInputError, match=r"attractor\[torch\]"):
        load_method("operator:not_")


def test_objects():
    assert as_method(sign_descent(0.1), "mine").own_norm.name == "l_inf"
    assert as_method(optax.sgd(0.1), "mine").optimizer.name == "mine"
    with pytest.raises(InvalidInputError, match="str"):
        as_method("sgd", "mine")
