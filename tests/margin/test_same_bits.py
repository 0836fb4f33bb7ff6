"""An instance has the same bits alone, in any part of its batch, in any order, on any threads."""

from dataclasses import astuple, fields, replace

import numpy as np
import pytest
from certificate_examples import GEOMETRIES

from attractor.geometry import Frobenius, Nuclear, Spectral
from attractor.margin import MarginProblem, solve
from attractor.margin.batching.batches import inner_products, powers
from attractor.margin.batching.reduction import reduce_to_spans
from attractor.margin.batching.scaling import ScaledConstraints
from attractor.margin.certificates.correction import meet_constraints
from attractor.margin.frobenius.active_sets import pivot
from attractor.support.threads import use_threads
from fuzzing.margin_families import ALIKE, FAMILIES, make


def mixed_batch(seed=0, each=2, shape=(5, 4)):
    """Instances of every kind: plain, thin, repeated, with equalities, tiny bounds, infeasible."""
    rng = np.random.default_rng(seed)
    count, m = 6 * each, 9
    left, right = rng.normal(size=(count, m, shape[0])), rng.normal(size=(count, m, shape[1]))
    planted = rng.normal(size=(count, *shape))
    left *= np.sign(np.einsum("kmd,kde,kme->km", left, planted, right))[..., None]
    bounds, equality = np.ones((count, m)), np.zeros((count, m), dtype=bool)
    kinds = np.arange(count) % 6
    left[kinds == 1, :, 2:], right[kinds == 1, :, 3:] = 0.0, 0.0
    planted[kinds == 1] = 0.0
    left[kinds == 2, 4], right[kinds == 2, 4] = left[kinds == 2, 3], right[kinds == 2, 3]
    equality[kinds == 3, :2], bounds[kinds == 3, :2] = True, 0.0
    bounds[kinds == 4] = 10.0 ** rng.uniform(-2, 1, size=(each, m))
    left[kinds == 4, 5] = -left[kinds == 4, 4] + 1e-2 * rng.normal(size=(each, shape[0]))
    right[kinds == 4, 5] = right[kinds == 4, 4]
    left[kinds == 5, 1], right[kinds == 5, 1] = -left[kinds == 5, 0], right[kinds == 5, 0]
    present = np.ones((count, m), dtype=bool)
    present[::4, 7], present[1::4, 6:8] = False, False
    return MarginProblem(left, right, bounds, equality, present)


def bits(solution):
    """All numbers of a solution, instance by instance."""
    certificate = solution.certificate
    arrays = [solution.W, solution.multipliers, solution.status.astype(str)]
    arrays += [getattr(certificate, field.name) for field in fields(certificate)]
    return [tuple(array[i].tobytes() for array in arrays) for i in range(len(solution.W))]


def with_slots(solution):
    """A solution with an axis of instances, of a single problem with all slots present."""
    W, x = solution.W[None], solution.multipliers[None]
    status = np.array([solution.status], dtype=object)
    return replace(solution, W=W, multipliers=x, status=status)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda geometry: geometry.name)
def test_parts_permutations_and_instances_alone_give_the_same_bits(geometry):
    problem = mixed_batch()
    whole = bits(solve(problem, geometry))
    rng = np.random.default_rng(1)
    order = rng.permutation(len(problem))
    for part in np.split(order, np.sort(rng.integers(1, len(order), size=2))):
        assert bits(solve(problem[part], geometry)) == [whole[i] for i in part]
    for i in range(6):
        assert bits(solve(problem[i : i + 1], geometry)) == [whole[i]]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda geometry: geometry.name)
def test_many_problems_of_all_families_have_the_bits_they_have_alone(geometry, seed):
    for family in FAMILIES:
        made = [make(family, ALIKE * (8 * seed + 1) + number) for number in range(ALIKE)]
        names = ("left", "right", "bounds", "equality")
        problem = MarginProblem(*(np.stack([getattr(one, name) for one in made]) for name in names))
        together = bits(solve(problem, geometry))
        for i in range(ALIKE):
            assert bits(solve(problem[i : i + 1], geometry)) == [together[i]], (family, i)


@pytest.mark.parametrize("geometry", [Frobenius(), Nuclear(), "l_inf"], ids=str)
def test_a_list_of_problems_of_mixed_shapes_gives_each_the_bits_it_has_alone(geometry):
    first, second = mixed_batch(each=1), mixed_batch(seed=1, each=1, shape=(3, 7))
    problems = [problem[i] for i in range(6) for problem in (first, second)]
    found = solve([*problems, first], geometry)
    assert bits(found[-1]) == bits(solve(first, geometry))
    for problem, together in zip(problems, found, strict=False):
        assert bits(with_slots(together)) == bits(with_slots(solve(problem, geometry)))


@pytest.mark.parametrize("geometry", ["frobenius", "l_1.5", "spectral"])
def test_empty_slots_make_no_difference_wherever_they_are(geometry):
    problem = mixed_batch(each=1)
    whole = solve(problem, geometry)
    for i in range(6):  # without its empty slots
        assert bits(with_slots(whole[i])) == bits(with_slots(solve(problem[i], geometry)))


def test_the_evidence_for_the_rank_has_the_bits_it_has_alone():
    problem = mixed_batch()
    together = solve(problem, Nuclear()).rank_evidence
    for i in range(6):
        alone = solve(problem[i], Nuclear()).rank_evidence
        np.testing.assert_array_equal(astuple(together[i]), astuple(alone))
    assert len(solve(problem[:0], Nuclear()).rank_evidence.rank) == 0


def test_what_fails_one_instance_leaves_the_bits_of_the_others():
    def fails_on_tiny_bounds(task):
        if (task.scaled.bounds < 0.6).any():
            raise np.linalg.LinAlgError
        return solve_one(task)

    from attractor.margin.frobenius.least_distance import solve_by_active_set as solve_one

    problem = mixed_batch()
    whole = bits(solve(problem, methods=[fails_on_tiny_bounds]))
    assert whole == [
        one
        for i in range(len(problem))
        for one in bits(solve(problem[i : i + 1], methods=[fails_on_tiny_bounds]))
    ]


@pytest.mark.long
def test_blocks_and_threads_make_no_difference(monkeypatch):
    problem = mixed_batch()
    whole = bits(solve(problem, Spectral()))
    monkeypatch.setattr("attractor.margin._solve._BLOCK_ENTRIES", 200)
    for threads in (1, 2, 4):
        with use_threads(threads):
            assert bits(solve(problem, Spectral())) == whole


@pytest.mark.parametrize("geometry", ["frobenius", "l_inf"])
def test_large_instances_have_the_same_bits_beside_small_ones(geometry):
    rng = np.random.default_rng(3)
    left, right = rng.normal(size=(2, 2100, 3)), rng.normal(size=(2, 2100, 2))
    left *= np.sign(np.einsum("kmd,kme,de->km", left, right, rng.normal(size=(3, 2))))[..., None]
    present = np.ones((2, 2100), dtype=bool)
    present[1, 40:] = False
    batch = MarginProblem(left, right, np.ones((2, 2100)), present=present)
    whole = solve(batch, geometry)
    for i in range(2):
        assert bits(with_slots(whole[i])) == bits(with_slots(solve(batch[i], geometry)))


def test_powers_and_sums_do_not_depend_on_how_many_instances_there_are():
    rng = np.random.default_rng(0)
    sizes, exponent = rng.random((7, 5, 3)), np.array([2.0, 0.5, 1.0, 3.0, -1.0, 2.5, 0.0])
    together = powers(sizes, exponent[:, None, None])
    np.testing.assert_allclose(together, sizes ** exponent[:, None, None], rtol=1e-15)
    for shape in ((5, 3), (1, 1)):
        some = sizes[:, : shape[0], : shape[1]]
        alone = [powers(some[i : i + 1], exponent[i : i + 1, None, None]) for i in range(7)]
        assert np.array_equal(powers(some, exponent[:, None, None]), np.concatenate(alone))
    long = rng.normal(size=(3, 90, 100))  # more than NumPy's buffer
    alone = [inner_products(one[None], one[None])[0] for one in long]
    assert inner_products(long, long).tolist() == alone
    np.testing.assert_allclose(alone, (long**2).sum((1, 2)))


def test_pivoting_eliminates_in_blocks_of_sizes_of_their_own():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(12, 30, 60))
    gram = np.zeros((12, 31, 31))
    gram[:, :30, :30] = rows @ np.swapaxes(rows, -1, -2) / 60
    bounds = np.pad(rng.uniform(0.1, 1, size=(12, 30)), ((0, 0), (0, 1)))
    present = np.pad(np.ones((12, 30), dtype=bool), ((0, 0), (0, 1)))
    together, ended = pivot(gram, bounds, present, present)
    assert ended.all()
    assert len({int(n) for n in (together > 0).sum(-1)}) > 1  # sizes that differ
    for i in range(12):
        one = np.s_[i : i + 1]
        assert np.array_equal(
            pivot(gram[one], bounds[one], present[one], present[one])[0], together[one]
        )


def test_spans_are_reduced_by_their_own_dimensions():
    problem = mixed_batch(each=1)
    scaled = ScaledConstraints.of(problem)
    seen = []
    for places, part, P, Q in reduce_to_spans(scaled):
        seen += places.tolist()
        np.testing.assert_allclose(
            part.left @ np.swapaxes(P, -1, -2), scaled.left[places], atol=1e-14
        )
        np.testing.assert_allclose(
            part.right @ np.swapaxes(Q, -1, -2), scaled.right[places], atol=1e-14
        )
        if 1 in places:  # the one of rank 2 and 3
            assert (P.shape[-1], Q.shape[-1]) == (2, 3)
    assert sorted(seen) == list(range(6))


def test_corrections_end_instance_by_instance():
    scaled = ScaledConstraints.of(mixed_batch(each=3)[[3, 9, 15]])
    W = np.random.default_rng(5).normal(size=(3, 5, 4))
    W[0] = meet_constraints(scaled.choose([0]), W[:1])[0]  # met already
    together = meet_constraints(scaled, W)
    for i in range(3):
        assert np.array_equal(meet_constraints(scaled.choose([i]), W[i : i + 1])[0], together[i])
