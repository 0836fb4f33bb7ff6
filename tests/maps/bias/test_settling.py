"""Runs that go on while their answer may change."""

import numpy as np
import optax
import pytest

from attractor import Lp
from attractor.maps.bias import Method, bias_matrix, load_geometry, which_norm
from attractor.maps.bias._bias_matrix import Experiment
from attractor.support.errors import InvalidInputError
from attractor.training import normalized_gradient_descent

SOLVED = Lp(1.25)
"""What ``module:name`` may name."""


def test_steps_are_doubled_while_the_answer_may_change(data):
    said = []
    slow = Method("slow", normalized_gradient_descent(0.2))
    found = Experiment.checked(*data, [slow], steps=100).settled(400, said.append)
    assert found.data["steps"].values.tolist() == [400]
    assert [line.split("; ")[1] for line in said] == ["going on to 200", "going on to 400"]


def test_what_has_settled_is_not_run_again(data):
    said = []
    fast = Method("fast", normalized_gradient_descent(3.0))
    Experiment.checked(*data, [fast], steps=400).settled(6400, said.append)
    assert said == []


def test_beside_a_method_that_goes_on_what_has_settled_is_kept(data, monkeypatch):
    ran, run = [], Experiment.run
    monkeypatch.setattr(Experiment, "run", lambda self, row: ran.append(row) or run(self, row))
    rows = [
        Method("slow", normalized_gradient_descent(0.2)),
        Method("fast", normalized_gradient_descent(3.0)),
    ]
    found = bias_matrix(*data, methods=rows, steps=200, most_steps=400)
    assert [(row.name, row.steps) for row in ran] == [("slow", None), ("fast", None), ("slow", 400)]
    alone = bias_matrix(*data, methods=[rows[1]], steps=200)
    np.testing.assert_array_equal(
        found.data["margin_ratio"].sel(optimizer="fast"),
        alone.data["margin_ratio"].sel(optimizer="fast"),
    )


def test_which_norm_compares_norms_of_ones_own(data):
    found = which_norm(*data, optax.sgd(1.0), geometries=[SOLVED, "l_4"], steps=20)
    assert {"l_1.25", "l_4", "frobenius"} <= set(found.columns)
    with pytest.raises(InvalidInputError, match="geometries"):
        which_norm(*data, optax.sgd(1.0), geometries=[3])


def test_norms_are_loaded_by_name_or_from_a_module():
    assert load_geometry("nuclear").name == "nuclear"
    assert load_geometry(f"{__name__}:SOLVED") is SOLVED
    for spelling, words in (
        (f"{__name__}:np", "is a module"),
        (f"{__name__}:none", "has no 'none'"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            load_geometry(spelling)
