"""Trajectories with every kind of head, to a file and back."""

import dataclasses

import equinox as eqx
import jax
import numpy as np
import pytest
import runs

from attractor.attention import (
    ConcaveHead,
    LinearHead,
    ModuleHead,
    ReLUHead,
    ValueMatrix,
    VocabularyHead,
)
from attractor.attention.heads import Head
from attractor.support.errors import FileFormatError, InvalidInputError
from attractor.training import Trajectory


@pytest.fixture
def run():
    return runs.trajectory()


def module(seed=0):
    return eqx.nn.MLP(5, "scalar", 3, 1, key=jax.random.key(seed))


def saved_with(run, head, path):
    dataclasses.replace(run, head=head).save(path)
    return path


@pytest.mark.parametrize(
    "build",
    [
        lambda r: LinearHead(r.normal(size=(2, 5))),
        lambda r: ReLUHead(r.normal(size=(5, 3))),
        lambda r: ConcaveHead(r.normal(size=5), 0.25),
        lambda r: ConcaveHead(r.normal(size=(2, 5)), [0.25, 0.5]),
        lambda r: VocabularyHead(r.normal(size=(4, 5))),
        lambda r: ValueMatrix(r.normal(size=(5, 3)), ConcaveHead(r.normal(size=3), 1.0)),
        lambda r: ValueMatrix(np.eye(5), ValueMatrix(np.eye(5), ReLUHead(r.normal(size=(5, 2))))),
    ],
)
def test_a_head_comes_back_as_it_was(run, rng, tmp_path, build):
    head = build(rng)
    path = saved_with(run, head, tmp_path / "run.nc")
    again = Trajectory.load(path)
    assert type(again.head) is type(head) and again.head.name == head.name
    outputs = rng.normal(size=(2, 7, 5))
    np.testing.assert_array_equal(again.head(outputs), head(outputs))
    assert again.data.identical(run.data)
    assert Trajectory.load(path, head).head is head


@pytest.mark.long
def test_a_module_leaves_its_arrays_and_comes_back_when_given(run, rng, tmp_path):
    path = saved_with(run, ModuleHead(module(), 5), tmp_path / "run.nc")
    assert Trajectory.load(path).head is None
    again = Trajectory.load(path, module())
    outputs = rng.normal(size=(7, 5))
    np.testing.assert_array_equal(again.head(outputs), ModuleHead(module(), 5)(outputs))
    with pytest.raises(
        InvalidInputError, match=r"head: its arrays \['layers.0.bias', .* not those"
    ):
        Trajectory.load(path, module(1))
    with pytest.raises(InvalidInputError, match="'linear', but the file was saved with 'module'"):
        Trajectory.load(path, LinearHead(np.ones(5)))
    behind = saved_with(run, ValueMatrix(np.eye(5), module()), tmp_path / "behind.nc")
    assert Trajectory.load(behind).head is None
    assert Trajectory.load(behind, ValueMatrix(np.eye(5), module())).head is not None


def test_a_module_without_arrays_and_one_with_awkward_paths(run, tmp_path):
    class Table(eqx.Module):
        parts: dict

        def __call__(self, x):
            return x @ self.parts["a/b.c"]

    for head in (eqx.nn.Lambda(lambda x: x.sum()), Table({"a/b.c": np.arange(5.0)})):
        path = saved_with(run, ModuleHead(head, 5), tmp_path / "run.nc")
        assert Trajectory.load(path).head is None
        assert Trajectory.load(path, head).head is not None


def test_a_head_of_the_users_own_class(run, tmp_path):
    class Cubic(Head):
        name = "cubic"
        weight: np.ndarray
        instances = None
        input_dimension = 5

        def predict(self, outputs):
            return outputs**3 @ self.weight

    path = saved_with(run, Cubic(np.ones(5)), tmp_path / "run.nc")
    assert Trajectory.load(path).head is None
    assert Trajectory.load(path, Cubic(np.ones(5))).head.name == "cubic"


def test_a_trajectory_whose_head_was_not_given_can_be_saved_again(run, tmp_path):
    path = saved_with(run, None, tmp_path / "run.nc")
    again = Trajectory.load(path)
    assert again.head is None and again.data.identical(run.data)
    with pytest.raises(InvalidInputError, match="saved with 'none'"):
        Trajectory.load(path, LinearHead(np.ones(5)))


def test_a_damaged_head_is_refused(run, tmp_path, monkeypatch):
    monkeypatch.setattr(LinearHead, "arrays", lambda self: {"slope": np.ones(5)})
    path = saved_with(run, LinearHead(np.ones(5)), tmp_path / "run.nc")
    with pytest.raises(FileFormatError, match="do not define 'linear'"):
        Trajectory.load(path)
