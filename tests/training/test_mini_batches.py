import jax.numpy as jnp
import numpy as np
import pytest

from attractor.attention import LinearHead
from attractor.datasets import unit_tokens as draw
from attractor.support.errors import InvalidInputError, TrialStatus
from attractor.training import adam, gradient_descent, normalized_gradient_descent, train
from attractor.training.mini_batches import batch_at

STEP = normalized_gradient_descent(0.1)


def test_a_batch_of_all_sequences_is_the_full_batch(unit_tokens):
    tokens, head = unit_tokens(3)
    full = train(tokens, head, gradient_descent(0.5), steps=40)
    drawn = train(tokens, head, gradient_descent(0.5), steps=40, batch_size=3)
    np.testing.assert_allclose(drawn.W(), full.W(), atol=1e-13)


def test_each_step_sees_as_many_sequences_as_asked_for(unit_tokens):
    # One sequence in a step moves W by a matrix of rank one, two by one of rank two.
    for size in (1, 2):
        run = train(*unit_tokens(2), STEP, steps=12, batch_size=size, record=range(13))
        moves = np.diff(run.data["W"].to_numpy(), axis=2)
        assert (np.linalg.matrix_rank(moves, tol=1e-10) == size).all()


def test_batches_differ_between_steps_seeds_and_instances(unit_tokens):
    tokens, head = unit_tokens(2)
    run = train(
        tokens, head, STEP, steps=60, seeds=2, batch_size=1, record=range(61), initial=np.eye(5)
    )
    found = drawn(tokens, run)
    assert len({tuple(order) for order in found.reshape(4, -1)}) == 4
    counts = np.stack([np.bincount(order, minlength=3) for order in found.reshape(4, -1)])
    assert (counts > 0).all() and counts.max() < 35


def test_batches_are_those_of_the_trial_alone(unit_tokens):
    tokens, head = unit_tokens(30)
    together = train(tokens, head, STEP, steps=40, batch_size=2)
    alone = train(tokens[29:], LinearHead(head.weight[29:]), STEP, steps=40, batch_size=2)
    np.testing.assert_array_equal(alone.W()[0], together.W()[29])


def test_a_batch_at_rest_does_not_freeze_the_trial():
    from attractor.tokens import Tokens

    keys = np.ones((3, 4, 5))  # sequences of equal tokens have no gradient
    keys[2, 0, 0] = 2.0
    tokens = Tokens(keys, np.ones((3, 5)), np.ones(3))
    run = train(
        tokens, LinearHead(np.eye(5)[0]), STEP, steps=50, batch_size=1, initial=np.zeros((5, 5))
    )
    assert run.data["status"].item() == TrialStatus.TRAINED
    moved = np.linalg.norm(run.W()) / 0.1
    assert 1 <= round(moved) < 40


def drawn(tokens, run):
    """The sequence that each step saw: its query is the right singular vector of the move."""
    moves = np.diff(run.data["W"].to_numpy(), axis=2)
    rows = np.linalg.svd(moves)[2][..., 0, :]
    return np.abs(np.einsum("isne,ike->isnk", rows, tokens.queries[:, :, 0])).argmax(-1)


def test_an_epoch_sees_every_sequence_once_in_another_order_each(unit_tokens):
    tokens, head = unit_tokens(2)
    options = {"seeds": 2, "batch_size": 1, "record": range(31), "initial": np.eye(5)}
    run = train(tokens, head, STEP, steps=30, batch_order="shuffled", **options)
    found = drawn(tokens, run)
    assert run.settings["batch_order"] == "shuffled"
    assert len({tuple(order) for order in found.reshape(4, -1)}) == 4
    epochs = found.reshape(2, 2, 10, 3)
    np.testing.assert_array_equal(np.sort(epochs), np.broadcast_to(np.arange(3), epochs.shape))
    assert len({tuple(order) for order in epochs.reshape(40, 3)}) == 6
    alone = train(
        tokens[1:], LinearHead(head.weight[1:]), STEP, steps=30, batch_order="shuffled", **options
    )
    np.testing.assert_array_equal(alone.W()[0], run.W()[1])


def test_batches_are_blocks_of_the_order():
    key = np.array([3, 4], np.uint32)
    blocks = [
        np.stack([batch_at(jnp.asarray(step), key, 6, 2, order) for step in range(6)])
        for order in ("cyclic", "shuffled", "random")
    ]
    np.testing.assert_array_equal(blocks[0], [[0, 1], [2, 3], [4, 5]] * 2)
    epochs = np.sort(blocks[1].reshape(2, 6))
    np.testing.assert_array_equal(epochs, [range(6)] * 2)
    assert (blocks[1][:3] != blocks[1][3:]).any()
    assert all(len(set(batch.tolist())) == 2 for batch in blocks[2])


def test_per_sample_adam_in_cyclic_order_is_a_plain_loop():
    tokens, head = draw(3, 4, 5, seeds=2)
    rate, b1, b2 = 0.02, 0.9, 0.95
    run = train(
        tokens, head, adam(rate, b1, b2), steps=24, initial=np.zeros((5, 5)), batch_size=1,
        batch_order="cyclic", record=range(25),
    )  # fmt: skip
    for place in range(2):
        X, z, y = tokens.keys[place], tokens.queries[place, :, 0], tokens.labels[place, :, 0]
        v = head.weight[place]
        W, m, s, path = np.zeros((5, 5)), 0.0, 0.0, [np.zeros((5, 5))]
        for t in range(24):
            i = t % 3
            scores = X[i] @ W @ z[i]
            p = np.exp(scores) / np.exp(scores).sum()
            gain = X[i] @ v
            slope = -y[i] / (1 + np.exp(y[i] * (p @ gain)))
            gradient = np.outer(X[i].T @ (slope * p * (gain - p @ gain)), z[i])
            m, s = b1 * m + (1 - b1) * gradient, b2 * s + (1 - b2) * gradient**2
            late = m / (1 - b1 ** (t + 1)), np.sqrt(s / (1 - b2 ** (t + 1)))
            W = W - rate * late[0] / late[1]
            path.append(W)
        np.testing.assert_allclose(run.data["W"][place, 0], path, atol=1e-12)


@pytest.mark.parametrize(
    "given",
    [
        {"batch_order": "sorted", "batch_size": 2},
        {"batch_order": "cyclic"},
        {"batch_size": 2, "batch_order": "cyclic"},
        {"batch_size": 2, "batch_order": "shuffled"},
    ],
    ids=str,
)
def test_orders_that_there_are_not_are_refused(unit_tokens, given):
    with pytest.raises(InvalidInputError, match=next(iter(given))):
        train(*unit_tokens(1), STEP, steps=1, **given)


@pytest.mark.parametrize("size", (0, 4, 2.0))
def test_impossible_batches_are_refused(unit_tokens, size):
    with pytest.raises(InvalidInputError, match="batch_size"):
        train(*unit_tokens(1), STEP, steps=1, batch_size=size)


def test_metrics_of_the_user_are_recorded(unit_tokens):
    run = train(
        *unit_tokens(3), STEP, steps=20,
        metrics={
            "largest_entry": lambda seen: jnp.abs(seen.W).max(),
            "entropy": lambda seen: -(seen.probabilities * jnp.log(seen.probabilities)).sum(-1),
        },
    )  # fmt: skip
    np.testing.assert_array_equal(
        run.data["largest_entry"], np.abs(run.data["W"]).max(("row", "column"))
    )
    assert run.data["entropy"].dims[:3] == ("instance", "seed", "step")
    assert run.data["entropy"].shape[3:] == (3, 1)


@pytest.mark.parametrize(
    ("metrics", "message"),
    [({"loss": jnp.sum}, "'loss' cannot be used"), ({"one": 1}, "'one' is 1"),
     ({"a b": jnp.sum}, "'a b' cannot be used")],
)  # fmt: skip
def test_metrics_are_functions_with_names_of_their_own(unit_tokens, metrics, message):
    with pytest.raises(InvalidInputError, match=message):
        train(*unit_tokens(1), STEP, steps=1, metrics=metrics)
