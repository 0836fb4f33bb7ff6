import numpy as np
import pytest

from attractor.analysis.basins import basin_boundary
from attractor.errors import InvalidInputError

SEGMENT = ((0.0, -1.5), (0.0, 1.0))


def winner(p, steps):
    """Token on top after normalized descent on three tokens, in plain arithmetic from log weights.

    The gradient is a sum over pairs of tokens; the common factor of a row drops out.
    """
    keys, scores = np.array([[-0.1, 1], [1, 0], [0, 0]]), np.array([1, 0.9, 0])
    for _ in range(steps):
        logits = p @ keys.T
        pairs = [(0, 1), (0, 2), (1, 2)]
        logs = np.stack([logits[:, a] + logits[:, b] for a, b in pairs], axis=-1)
        weights = np.exp(logs - logs.max(-1, keepdims=True))
        forces = np.stack([(scores[a] - scores[b]) * (keys[a] - keys[b]) for a, b in pairs])
        pull = weights @ forces
        p = p + 0.1 * pull / np.linalg.norm(pull, axis=-1, keepdims=True)
    return (p @ keys.T).argmax(-1)


def test_it_is_where_an_independent_run_changes_its_mind(three_tokens, step):
    found = basin_boundary(*three_tokens, step, *SEGMENT, parameterization="p", tolerance=1e-6)
    sides = np.stack([found.before[:, 0], found.after[:, 0]])
    assert winner(sides, 5000).tolist() == [1, 0]
    assert found.reached_before.tolist() == [[1]] and found.reached_after.tolist() == [[0]]
    assert np.linalg.norm(sides[1] - sides[0]) == pytest.approx(found.bracket, rel=1e-6)
    assert found.bracket <= 1e-6
    assert found.settled
    assert -1.5 + 2.5 * found.fraction == pytest.approx(found.middle[1, 0], abs=1e-12)


@pytest.mark.parametrize("steps", [500, 1000])
def test_a_short_horizon_moves_it_and_says_so(three_tokens, step, steps):
    options = {"parameterization": "p", "tolerance": 1e-5}
    short = basin_boundary(*three_tokens, step, *SEGMENT, steps=steps, **options)
    long = basin_boundary(*three_tokens, step, *SEGMENT, **options)
    assert not short.settled and "have not settled" in str(short)
    assert long.settled and "have not settled" not in str(long)
    assert 1e-4 < short.middle[1, 0] - long.middle[1, 0] < 0.02
    sides = np.stack([short.before[:, 0], short.after[:, 0]])
    assert winner(sides, steps).tolist() == [1, 0]


def test_from_either_end(three_tokens, step):
    options = {"parameterization": "p", "tolerance": 1e-4}
    there = basin_boundary(*three_tokens, step, *SEGMENT, **options)
    back = basin_boundary(*three_tokens, step, *SEGMENT[::-1], **options)
    np.testing.assert_allclose(there.middle, back.middle, atol=2e-4)
    assert there.fraction + back.fraction == pytest.approx(1, abs=1e-4)
    np.testing.assert_array_equal(there.reached_before, back.reached_after)


def test_a_boundary_cannot_be_told_finer_than_numbers(three_tokens, step):
    found = basin_boundary(
        *three_tokens, step, *SEGMENT, parameterization="p", tolerance=1e-300, steps=500
    )
    assert 0 < found.bracket < 1e-15


def test_bad_input(three_tokens, step):
    cases = [
        ((0.0, 1.0), (0.0, 2.0), {}, "end"),
        ((0.0, 1.0, 2.0), (0.0, 2.0), {}, "start"),
        (*SEGMENT, {"tolerance": 0.0}, "tolerance"),
        (*SEGMENT, {"steps": 0}, "steps"),
        (*SEGMENT, {"parameterization": "(v, p)"}, "parameterization"),
    ]
    for start, end, options, argument in cases:
        given = {"parameterization": "p", "steps": 200} | options
        with pytest.raises(InvalidInputError, match=argument):
            basin_boundary(*three_tokens, step, start, end, **given)
