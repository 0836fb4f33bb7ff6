import numpy as np
import pytest
from conic_oracle import conic_value, entrywise, frobenius
from joint_examples import SLACK, TIGHT, published_joint, random_joint

from attractor.geometry import Frobenius, Lp
from attractor.margin import MarginProblem, label_problem, label_support, relaxed_problem, solve
from attractor.margin.selection import Selection
from attractor.support.errors import InvalidInputError, Status
from attractor.tokens import Tokens


def relaxed_of_labels(tokens, selection):
    supports = label_support(solve(label_problem(tokens, selection)))
    return solve(relaxed_problem(tokens, selection, supports))


def test_published_values():
    tight = relaxed_of_labels(*published_joint(TIGHT))
    np.testing.assert_allclose(tight.W[:, 0], [4 / 3, 1 / 3], rtol=1e-12)
    assert tight.norm == pytest.approx(1.3743685, abs=1e-7)
    tokens, selection = published_joint(SLACK)
    slack = relaxed_of_labels(tokens, selection)
    np.testing.assert_allclose(slack.W[:, 0], [1, 0], atol=1e-12)
    np.testing.assert_array_equal(slack.support_tokens[:, 0, 0], [1, 1, 0])
    plain = solve(MarginProblem.from_selection(tokens, selection))
    np.testing.assert_allclose(plain.W[:, 0], [1.25, 0.25], rtol=1e-12)


@pytest.mark.parametrize("geometry, norm", [(Frobenius(), frobenius), (Lp(3), entrywise(3))])
def test_norms_agree_with_a_conic_solver(geometry, norm):
    for seed in range(4):
        tokens, selection = random_joint(seed, n=4)
        problem = relaxed_problem(tokens, selection, np.arange(4) < 2)
        assert solve(problem, geometry).norm == pytest.approx(conic_value(problem, norm), rel=1e-7)


def test_every_further_support_makes_the_norm_larger():
    tokens, selection = random_joint(1, n=4)
    norms = [
        solve(relaxed_problem(tokens, selection, np.arange(4) < count)).norm for count in range(5)
    ]
    assert norms[0] == 0
    assert (np.diff(norms) > 0).all()
    plain = solve(MarginProblem.from_selection(tokens, selection))
    assert norms[-1] == pytest.approx(plain.norm, rel=1e-12)


def test_batches_of_ragged_rows():
    rng = np.random.default_rng(0)
    mask = np.ones((2, 3, 4), dtype=bool)
    mask[1, :2, 2:] = False
    tokens = Tokens(rng.normal(size=(2, 3, 4, 5)), rng.normal(size=(2, 3, 2)), mask=mask)
    selection = Selection.from_index(tokens, rng.integers(0, 2, size=(2, 3)))
    supports = np.array([[True, False, True], [False, True, False]])
    together = solve(relaxed_problem(tokens, selection, supports[..., None]))
    for i in range(2):
        alone = solve(relaxed_problem(tokens[i], selection[i], supports[i]))
        np.testing.assert_allclose(alone.W, together.W[i], rtol=1e-9, atol=1e-12)


def test_a_copy_of_the_selected_token_harms_support_rows_alone():
    keys = [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]]
    tokens = Tokens.prompt_vector(keys, [1, 1])
    selection = Selection.from_index(tokens, [0, 0])
    assert solve(relaxed_problem(tokens, selection, [True, False])).status is Status.OPTIMAL
    assert solve(relaxed_problem(tokens, selection, [True, True])).status is Status.INFEASIBLE


def test_bad_input_is_refused():
    tokens, selection = published_joint(TIGHT)
    for supports in ([True, False], [1, 0, 1], np.ones((3, 2), dtype=bool)):
        with pytest.raises(InvalidInputError, match=r"supports: .* Give booleans"):
            relaxed_problem(tokens, selection, supports)
    both = Selection(tokens.mask, np.zeros((3, 1), dtype=bool))
    with pytest.raises(InvalidInputError, match="selection"):
        relaxed_problem(tokens, both, [True] * 3)
