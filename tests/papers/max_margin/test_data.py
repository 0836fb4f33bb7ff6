"""The data of the experiments, told by the margin problems that they were published with."""

import numpy as np
import pytest

from attractor.margin import relaxed_problem, solve
from attractor.margin.selection import Selection
from attractor.papers.hypotheses import label_solution, supports
from attractor.papers.max_margin.data import joint_training, one_sequence, three_sequences

CLOSE = {"rtol": 0, "atol": 1e-8}


@pytest.mark.parametrize(
    ("token", "direction", "norm", "support"),
    [
        (0, [-0.0990099010, 0.9900990099], 0.9950371902, [2]),
        (1, [1, 0], 1, [2]),
        (2, [-1, -1.1], 2.21**0.5, [0, 1]),
    ],
)
def test_one_sequence(token, direction, norm, support):
    case = one_sequence(equal_scores=False)
    solution = case.solution(selection=Selection.from_index(case.tokens, [token]))
    np.testing.assert_allclose(solution.W[:, 0], direction, **CLOSE)
    np.testing.assert_allclose(solution.value, norm, **CLOSE)
    assert np.flatnonzero(solution.support_tokens).tolist() == support


def test_three_sequences():
    solution = three_sequences().solution()
    np.testing.assert_allclose(solution.W[:, 0], [0.8446263935, 0.1711223102], **CLOSE)
    np.testing.assert_allclose(solution.value, 0.8617868586, **CLOSE)
    assert np.argwhere(solution.support_tokens)[:, [0, 2]].tolist() == [[0, 6], [1, 5]]
    multipliers = solution.multipliers[solution.support] * solution.value  # of the squared norm
    np.testing.assert_allclose(multipliers, [0.4450611565, 0.2976154332], **CLOSE)


@pytest.mark.parametrize(
    ("tight", "plain", "relaxed"),
    [(True, [4 / 3, 1 / 3], [4 / 3, 1 / 3]), (False, [1.25, 0.25], [1, 0])],
)
def test_joint_training(tight, plain, relaxed):
    case = joint_training(all_labels_support=tight)
    np.testing.assert_allclose(label_solution(case).W[:, 0], [0, 1], **CLOSE)
    assert supports(case).ravel().tolist() == [True, True, tight]
    np.testing.assert_allclose(case.solution().W[:, 0], plain, **CLOSE)
    problem = relaxed_problem(case.tokens, case.selection, supports(case))
    np.testing.assert_allclose(solve(problem).W[:, 0], relaxed, **CLOSE)
