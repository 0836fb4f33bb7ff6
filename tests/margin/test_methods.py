"""Geometries that the library does not bring: which can be solved in, and what is known then."""

import dataclasses
import math

import numpy as np
import optax
import pytest
from margin_examples import random_problem, stored_tokens

from attractor.analysis import compare_geometries
from attractor.analysis.measures import directional_bregman_divergence
from attractor.attention import LinearHead
from attractor.geometry import Geometry, Lp, Nuclear
from attractor.margin import (
    MarginProblem,
    check_local_optimality,
    decompose,
    locally_optimal_selections,
    rate_ratio_direction,
    solve,
    solve_several,
)
from attractor.margin.methods import methods_for, register_methods
from attractor.support.errors import InvalidInputError
from attractor.training import declare

PROBLEM = random_problem(1, 4, 4, 5)[0]


class Plain(Lp):
    """An l_p norm under a name of its own."""

    def __init__(self, p):
        super().__init__(p)
        self.name = f"plain_{p}"


class Doubled(Lp):
    """Twice an l_p norm, which it does not say."""

    def norm(self, W):
        return 2 * super().norm(W)


class Taxicab(Geometry):
    """The sum of entries, as a user writes it who knows nothing of faces."""

    name, unique, unitarily_invariant, spelling = "taxicab", False, False, "taxicab"
    norm, dual_norm = (lambda self, W: Lp(1).norm(W)), (lambda self, G: Lp(1).dual_norm(G))
    from_name = classmethod(lambda cls, name: cls() if name == cls.name else None)
    examples = classmethod(lambda cls: (cls(),))

    def steepest_descent_direction(self, G):
        return Lp(1).steepest_descent_direction(G)

    def dual_norm_constant(self, rows, columns):
        return 1.0

    def norm_rounding(self, rows, columns):
        return Lp(1).norm_rounding(rows, columns)


def as_sum(method):
    return lambda task: method(dataclasses.replace(task, geometry=Lp(1)))


register_methods(Taxicab, lambda _: tuple(as_sum(method) for method in methods_for(Lp(1))))


@pytest.mark.parametrize("p", [1, 1.5, 2, math.inf])
def test_a_class_that_keeps_the_norm_of_another_is_solved_as_that(p):
    derived, plain = solve(PROBLEM, Plain(p)), solve(PROBLEM, Lp(p))
    np.testing.assert_array_equal(derived.W, plain.W)
    assert derived.uniqueness == plain.uniqueness
    assert derived.geometry.name == f"plain_{p}"


@pytest.mark.parametrize("p", [2, math.inf])
def test_so_is_a_large_problem_in_it(p):
    rng = np.random.default_rng(0)
    problem = MarginProblem(rng.normal((3, 0, 0), size=(2100, 3)), np.ones((2100, 1)))
    np.testing.assert_array_equal(solve(problem, Plain(p)).W, solve(problem, Lp(p)).W)


def test_nuclear_evidence_for_the_rank_goes_with_the_norm():
    mine = type("Mine", (Nuclear,), {})()
    mine.name = "mine"
    assert solve(PROBLEM, mine).rank_evidence == solve(PROBLEM, Nuclear()).rank_evidence


def test_a_class_that_overrides_the_norm_is_not_solved_as_its_parent():
    with pytest.raises(InvalidInputError, match=r"Doubled, which overrides the norm of Lp\. "):
        solve(PROBLEM, Doubled(1.5))


def test_the_classes_known_do_not_list_the_one_refused():
    other = type("Lp", (Geometry,), {**vars(Taxicab), "name": "other"})()
    with pytest.raises(InvalidInputError) as error:
        solve(PROBLEM, other)
    assert "test_methods.Lp" in error.value.problem
    assert "test_methods.Lp" not in error.value.remedy


def test_uniqueness_in_a_norm_of_unknown_faces_is_known_from_the_constraints_alone():
    free = solve(MarginProblem([[1.0, 2.0]], [[1.0, 1.0]]), Taxicab())
    assert free.status.value == "optimal"
    assert free.uniqueness == "not known"
    assert np.isnan(free.other_solution).all()
    held = MarginProblem([[1.0, 0.0], [0.0, 1.0]], np.ones((2, 1)), [1.0, 2.0], equality=True)
    assert solve(held, Taxicab()).uniqueness == "unique"


def test_a_large_problem_in_a_norm_of_the_users_own_is_left_to_its_own_methods():
    rng = np.random.default_rng(0)
    left = rng.normal((5, 0, 0), size=(2100, 3))
    problem = MarginProblem(left, np.ones((2100, 1)))
    solution = solve(problem, Taxicab())
    assert np.isfinite(solution.value)
    assert solution.value == pytest.approx(solve(problem, Lp(1)).value)


def test_a_certificate_file_claims_no_norm_that_is_overridden(tmp_path):
    solution = dataclasses.replace(solve(PROBLEM, Lp(1.5)), geometry=Doubled(1.5))
    with pytest.raises(InvalidInputError, match="no certificate is defined"):
        solution.save_certificate(tmp_path / "c.json")


def taking_a_norm(name):
    """The function of that name on a small data set, but for the norm."""
    tokens, selection, v = stored_tokens(slice(0, 1))
    tokens, selection, head = tokens[0], selection[0], LinearHead(v[0])
    return {
        "solve": lambda norm: solve(PROBLEM, norm),
        "decompose": lambda norm: decompose(tokens, np.full(tokens.mask.shape, 1 / 8), norm),
        "solve_several": lambda norm: solve_several(tokens, selection, norm),
        "rate_ratio_direction": lambda norm: rate_ratio_direction(tokens, selection, 1.0, norm),
        "locally_optimal_selections": lambda norm: locally_optimal_selections(
            tokens, head, norm, selections=selection
        ),
        "check_local_optimality": lambda norm: check_local_optimality(
            tokens, head, selection, geometry=norm
        ),
        "compare_geometries": lambda norm: compare_geometries(PROBLEM, [norm]),
        "directional_bregman_divergence": lambda norm: directional_bregman_divergence(
            np.eye(2)[None], np.ones((2, 2)), norm
        ),
        "declare": lambda norm: declare(optax.identity(), geometry=norm).geometry,
    }[name]


TAKE_A_NORM = (
    "solve decompose solve_several rate_ratio_direction locally_optimal_selections declare "
    "check_local_optimality compare_geometries directional_bregman_divergence"
).split()


@pytest.mark.parametrize("name", TAKE_A_NORM)
def test_what_takes_a_norm_takes_its_name(name):
    function = taking_a_norm(name)
    assert repr(function("l_1.5")) == repr(function(Lp(1.5)))
    with pytest.raises(InvalidInputError, match="geometry: none is called 'manhattan'"):
        function("manhattan")
