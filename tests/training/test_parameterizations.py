import jax
import numpy as np
import pytest

from attractor.attention import Joint, KeyQuery, LinearHead, PromptVector
from attractor.geometry import get_geometry
from attractor.margin import MarginProblem, solve
from attractor.margin.selection import attended_tokens
from attractor.support.errors import InvalidInputError, TrialStatus
from attractor.tokens import Tokens
from attractor.training import Trajectory, gradient_descent, normalized_gradient_descent, train

STEP = normalized_gradient_descent(0.1, per_factor=True)


@pytest.mark.parametrize("width", (1, 2, None))
def test_factors_of_any_width_are_trained_and_kept(unit_tokens, width):
    run = train(*unit_tokens(4), STEP, steps=100, parameterization=KeyQuery(width))
    K, Q = (run.data[name].isel(step=-1).to_numpy() for name in "KQ")
    assert K.shape[-1] == (width or 5)
    np.testing.assert_allclose(K @ np.swapaxes(Q, -1, -2), run.W(), atol=1e-13)
    assert run.geometry == "nuclear"
    assert np.linalg.matrix_rank(run.W()).max() <= (width or 5)
    norms = np.linalg.svd(run.W(), compute_uv=False).sum(-1)
    np.testing.assert_allclose(run.data["norm"].isel(step=-1), norms, rtol=1e-12)
    assert (run.data["loss"].isel(step=-1) < run.data["loss"].isel(step=0)).all()


def test_steps_per_factor_move_each_by_the_learning_rate(unit_tokens):
    run = train(*unit_tokens(3), STEP, steps=20, parameterization="KQ", record=range(21))
    for name in "KQ":
        moves = np.linalg.norm(np.diff(run.data[name], axis=2), axis=(-2, -1))
        np.testing.assert_allclose(moves, 0.1, rtol=1e-12)


def test_factors_at_zero_are_refused_as_a_saddle(unit_tokens):
    tokens, head = unit_tokens(2)
    zero, one = np.zeros((2, 1, 5, 5)), np.ones((2, 1, 5, 5))
    partly = np.concatenate([zero[:1], one[:1]])
    for K, Q in ((zero[0, 0], zero[0, 0]), (partly, partly)):
        with pytest.raises(InvalidInputError, match="saddle"):
            train(tokens, head, STEP, steps=1, parameterization="KQ", initial={"K": K, "Q": Q})
    run = train(
        tokens, head, STEP, steps=3, parameterization="KQ", initial={"K": zero[0, 0], "Q": one}
    )
    assert (run.data["status"] == TrialStatus.TRAINED).all()


def test_initial_factors_are_asked_for_by_name(unit_tokens):
    tokens, head = unit_tokens(2)
    with pytest.raises(InvalidInputError, match=r"Give {'K': ..., 'Q': ...}"):
        train(tokens, head, STEP, steps=1, parameterization="KQ", initial=np.eye(5))
    with pytest.raises(InvalidInputError, match=r"Give exactly \['K', 'Q'\]"):
        train(tokens, head, STEP, steps=1, parameterization="KQ", initial={"K": np.eye(5)})
    with pytest.raises(InvalidInputError, match=r"the shape of Q is \(5, 3\)"):
        given = {"K": np.ones((5, 2)), "Q": np.ones((5, 3))}
        train(tokens, head, STEP, steps=1, parameterization=KeyQuery(2), initial=given)


@pytest.mark.long
def test_a_prompt_is_the_matrix_of_tokens_made_for_it(unit_tokens):
    tokens, head = unit_tokens(3)
    weights = np.random.default_rng(0).normal(size=(5, 4))
    start = np.linspace(-1, 1, 4)
    prompt = train(
        tokens, head, STEP, steps=80, parameterization=PromptVector(weights), initial=start
    )
    made = Tokens.prompt_vector(tokens.keys, tokens.labels[..., 0], weights)
    matrix = train(made, head, STEP, steps=80, initial=start[:, None])
    np.testing.assert_allclose(prompt.W(), matrix.W(), atol=1e-12)
    np.testing.assert_array_equal(prompt.tokens.keys, made.keys)
    assert prompt.data["p"].dims == ("instance", "seed", "step", "row")


@pytest.mark.long
def test_joint_descent_is_descent_on_both(unit_tokens):
    tokens, head = unit_tokens(1)
    x, z, y = tokens.keys[0], tokens.queries[0, :, 0], tokens.labels[0, :, 0]
    run = train(tokens, head, gradient_descent(0.5), steps=25, parameterization="(v, W)")
    with jax.enable_x64(True):

        def loss(W, v):
            weights = jax.nn.softmax(jax.numpy.einsum("ntd,de,ne->nt", x, W, z))
            outputs = jax.numpy.einsum("nt,ntd->nd", weights, x)
            return jax.nn.softplus(-y * (outputs @ v)).mean()

        slopes = jax.jit(jax.grad(loss, argnums=(0, 1)))
        W, v = run.W(0)[0, 0], head.weight[0]
        for _ in range(25):
            down, along = slopes(W, v)
            W, v = W - 0.5 * down, v - 0.5 * along
    np.testing.assert_allclose(run.W()[0, 0], W, atol=1e-13)
    np.testing.assert_allclose(run.data["head_weight"][0, 0, -1], v, atol=1e-13)
    np.testing.assert_array_equal(run.data["head_weight"][0, 0, 0], head.weight[0])


def test_joint_descent_leaves_the_head_at_zero():
    keys = np.array(
        [[[-2.7, 1.2], [1.4, 2.1], [1.3, -0.1]], [[0.4, -2.2], [-1.1, -0.4], [0.9, 0.1]]]
    )
    tokens = Tokens.self_attention(keys, [1.0, -1.0])
    run = train(
        tokens, LinearHead(np.zeros(2)), STEP, steps=2000, parameterization="(v, W)",
        initial=np.zeros((2, 2)), record=[0, 1, 2000],
    )  # fmt: skip
    # The published run (mirror descent with p = 2): W rests for one step while v begins to move.
    np.testing.assert_array_equal(run.W(1), 0)
    reached = attended_tokens(tokens, run.W()[0])
    assert reached.index.ravel().tolist() == [1, 0]
    problem = MarginProblem.from_selection(tokens, reached[0])
    target = solve(problem, get_geometry("frobenius")).W
    W = run.W()[0, 0]
    assert 1 - (W * target).sum() / np.linalg.norm(W) / np.linalg.norm(target) < 1e-5
    np.testing.assert_allclose(run.data["norm"].isel(step=-1).item(), 200, atol=1)


@pytest.mark.long
def test_joint_runs_are_saved_and_read_again(unit_tokens, tmp_path):
    run = train(*unit_tokens(2), STEP, steps=30, parameterization=Joint(KeyQuery(2)))
    run.save(tmp_path / "run.nc")
    again = Trajectory.load(tmp_path / "run.nc")
    assert again.data.identical(run.data)
    assert again.settings["parameterization"] == "v, KQ"


@pytest.mark.parametrize("layer", ("KQ", "(v, W)", "p"))
def test_a_trial_alone_is_the_trial_of_a_batch(unit_tokens, layer):
    tokens, head = unit_tokens(40)
    together = train(tokens, head, STEP, steps=50, parameterization=layer)
    one = slice(31, 32)
    alone = train(tokens[one], LinearHead(head.weight[one]), STEP, steps=50, parameterization=layer)
    for name in alone.data:
        np.testing.assert_array_equal(alone.data[name][0], together.data[name][31])
