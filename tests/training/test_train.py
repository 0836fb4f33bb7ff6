import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attractor.attention import LinearHead
from attractor.geometry import Frobenius
from attractor.support.errors import InvalidInputError, PrecisionWarning, TrialStatus
from attractor.tokens import Tokens
from attractor.training import declare, gradient_descent, inputs, normalized_gradient_descent, train

STEP = normalized_gradient_descent(0.1)


def status_of(run):
    return run.data["status"].to_numpy()


@pytest.mark.long
def test_a_trial_alone_is_the_trial_of_a_batch_to_the_last_bit(unit_tokens):
    tokens, head = unit_tokens(100)
    together = train(tokens, head, STEP, steps=300)
    for number in (37, 0, 99):
        one = slice(number, number + 1)
        alone = train(tokens[one], LinearHead(head.weight[one]), STEP, steps=300)
        assert alone.data["instance"].item() == number
        for name in ("W", "loss", "log_gradient_norm", "attended", "attended_probability"):
            np.testing.assert_array_equal(alone.data[name][0], together.data[name][number])


def test_a_seed_alone_is_the_seed_of_many_to_the_last_bit(unit_tokens):
    tokens, head = unit_tokens(2)
    together = train(tokens, head, STEP, steps=100, seeds=30)
    alone = train(tokens, head, STEP, steps=100, seeds=2, seed=17)
    assert alone.data["seed"].to_numpy().tolist() == [17, 18]
    np.testing.assert_array_equal(alone.W(), together.W()[:, 17:19])
    single = train(tokens, head, STEP, steps=100, seed=17)
    np.testing.assert_array_equal(single.W()[:, 0], together.W()[:, 17])
    assert len({w.tobytes() for w in together.W(0).reshape(60, -1)}) == 60


def test_training_is_deterministic(unit_tokens):
    first, second = (train(*unit_tokens(30), STEP, steps=100) for _ in range(2))
    assert first.data.identical(second.data)


def test_default_initial_matrices_are_uniform_within_one_over_root_d(unit_tokens):
    W = train(*unit_tokens(16), STEP, steps=1, seeds=50, record=[0]).W(0)
    assert np.abs(W).max() <= 5**-0.5
    assert np.abs(W).max() > 0.99 * 5**-0.5
    assert abs(W.mean()) < 0.01 and W.dtype == np.float64


def test_normalized_steps_have_the_length_of_the_learning_rate(unit_tokens):
    run = train(*unit_tokens(5), STEP, steps=50, initial=np.zeros((5, 5)), record=range(51))
    lengths = np.linalg.norm(np.diff(run.data["W"].to_numpy(), axis=2), axis=(-2, -1))
    np.testing.assert_allclose(lengths, 0.1, rtol=1e-12)
    assert run.data["loss"].to_numpy()[:, :, -1].max() < run.data["loss"].to_numpy()[:, :, 0].min()


def test_steps_stay_exact_where_gradients_are_below_floating_point(unit_tokens):
    tokens, head = unit_tokens(3)
    start = train(tokens, head, STEP, steps=500).W()
    run = train(tokens, head, STEP, steps=20, initial=start * 100, record=range(21))
    assert (run.data["log_gradient_norm"].to_numpy() < -745).all()
    lengths = np.linalg.norm(np.diff(run.data["W"].to_numpy(), axis=2), axis=(-2, -1))
    np.testing.assert_allclose(lengths, 0.1, rtol=1e-9)
    assert (status_of(run) == TrialStatus.TRAINED).all()


def test_gradient_descent_is_optax_sgd_on_the_textbook_loss(unit_tokens):
    tokens, head = unit_tokens(1)
    x, z, y = tokens.keys[0], tokens.queries[0, :, 0], tokens.labels[0, :, 0]

    def loss(W):
        weights = jax.nn.softmax(jnp.einsum("ntd,de,ne->nt", x, W, z))
        return jax.nn.softplus(-y * (jnp.einsum("nt,ntd->nd", weights, x) @ head.weight[0])).mean()

    run = train(tokens, head, gradient_descent(0.5), steps=30)
    with jax.enable_x64(True):
        slope = jax.jit(jax.grad(loss))
        W = run.W(0)[0, 0]
        for _ in range(30):
            W = W - 0.5 * np.asarray(slope(W))
        np.testing.assert_allclose(run.W()[0, 0], W, atol=1e-14)
        np.testing.assert_allclose(run.data["loss"].to_numpy()[0, 0, -1], loss(W), rtol=1e-14)


def test_a_declared_optax_transformation_trains(unit_tokens):
    tokens, head = unit_tokens(2)
    declared = declare(optax.sgd(0.5), geometry=Frobenius())
    ours = train(tokens, head, gradient_descent(0.5), steps=20)
    found = train(tokens, head, declared, steps=20).W()
    # Its rate is a constant of the program; without optimizations that may round otherwise.
    np.testing.assert_allclose(found, ours.W(), rtol=1e-12, atol=1e-15)
    momentum = declare(optax.sgd(0.5, momentum=0.9), geometry=Frobenius())
    assert (train(tokens, head, momentum, steps=20).data["loss"].isel(step=-1)
            < ours.data["loss"].isel(step=-1)).all()  # fmt: skip


def test_a_zero_gradient_is_stationary_while_others_train():
    keys = np.zeros((2, 3, 4, 5))
    keys[0] = 1.0
    keys[1, :, 0, :2] = [1.0, 0.5]
    tokens = Tokens(keys, np.ones((2, 3, 5)), np.ones((2, 3)))
    run = train(tokens, LinearHead(np.eye(5)[0]), STEP, steps=10, initial=np.eye(5))
    assert status_of(run)[:, 0].tolist() == [TrialStatus.STATIONARY, TrialStatus.TRAINED]
    assert run.data["steps_taken"].to_numpy()[:, 0].tolist() == [0, 10]
    np.testing.assert_array_equal(run.W()[0, 0], np.eye(5))
    assert not run.data["W"].isnull().any()
    assert (run.data["log_gradient_norm"][0] == -np.inf).all()


def test_a_step_lost_in_rounding_has_a_status_of_its_own(unit_tokens):
    tokens, head = unit_tokens(2)
    initial = np.stack([np.full((5, 5), 1e18), np.zeros((5, 5))])
    run = train(tokens, head, STEP, steps=10, initial=initial)
    assert status_of(run)[:, 0].tolist() == [TrialStatus.BELOW_ROUNDING, TrialStatus.TRAINED]
    far = train(tokens, head, gradient_descent(0.1), steps=5, initial=initial)
    assert status_of(far)[0, 0] == TrialStatus.BELOW_ROUNDING


def test_a_diverged_trial_is_frozen_while_others_go_on(unit_tokens):
    tokens, head = unit_tokens(2)
    initial = np.zeros((2, 1, 5, 5))
    initial[0] = 1.7e308
    growing = declare(optax.scale(-1e308), geometry=Frobenius())
    run = train(tokens, head, growing, steps=8, initial=initial)
    assert TrialStatus.DIVERGED in status_of(run)[0]
    assert np.isfinite(run.W()).all()
    assert run.data["steps_taken"][1] > run.data["steps_taken"][0]


def test_permuting_tokens_rows_and_instances_permutes_the_answer(unit_tokens, rng):
    tokens, head = unit_tokens(3)
    start = rng.normal(size=(3, 1, 5, 5))
    run = train(tokens, head, STEP, steps=60, initial=start)
    order, rows, batch = rng.permutation(4), rng.permutation(3), np.array([2, 0, 1])
    shuffled = Tokens(
        tokens.keys[batch][:, rows][:, :, order],
        tokens.queries[batch][:, rows],
        tokens.labels[batch][:, rows],
    )
    other = train(shuffled, LinearHead(head.weight[batch]), STEP, steps=60, initial=start[batch])
    np.testing.assert_allclose(other.W(), run.W()[batch], atol=1e-12)
    attended = other.data["attended"].to_numpy()
    np.testing.assert_array_equal(
        order[attended], run.data["attended"].to_numpy()[batch][:, :, :, rows]
    )


def test_masked_padding_changes_nothing(unit_tokens):
    tokens, head = unit_tokens(2)
    keys = np.concatenate([tokens.keys, np.full((2, 3, 3, 5), 50.0)], axis=2)
    mask = np.broadcast_to(np.arange(7) < 4, (2, 3, 7))
    padded = Tokens(keys, tokens.queries, tokens.labels, mask)
    run, other = (train(data, head, STEP, steps=60) for data in (tokens, padded))
    np.testing.assert_allclose(other.W(), run.W(), atol=1e-12)
    assert other.data["attended"].max() < 4


def test_a_direction_need_not_be_reached_from_every_start():
    """Both sufficient conditions hold, and yet the start decides which direction is reached."""
    keys = np.array([[[1.0, 0.0], [0.0, 0.0]], [[-2.0, 0.1], [0.0, 0.0]]])
    tokens = Tokens(keys, np.array([[1.0, 0.0], [1.0, 0.0]]), [1.0, -1.0])
    starts = np.stack([np.diag([8.0, 0.0]), np.zeros((2, 2))])[None]
    step = normalized_gradient_descent(0.5)
    run = train(
        Tokens(tokens.keys[None], tokens.queries[None], tokens.labels[None]),
        LinearHead([1.0, 10.0]), step, steps=4000, seeds=2, initial=starts,
    )  # fmt: skip
    assert run.data["attended"].to_numpy()[0, 0, -1, :, 0].tolist() == [0, 1]
    assert run.data["attended"].to_numpy()[0, 1, -1, :, 0].tolist() == [0, 0]
    stuck, solved = (W / np.linalg.norm(W) for W in run.W()[0])
    assert (stuck * [[1, 0], [0, 0]]).sum() > 1 - 1e-4
    assert (solved * [[1, 0], [30, 0]]).sum() / np.hypot(1, 30) > 1 - 1e-4


def test_nothing_of_the_users_jax_settings_changes(unit_tokens):
    train(*unit_tokens(1), STEP, steps=2)
    assert not jax.config.jax_enable_x64
    assert jnp.zeros(1).dtype == jnp.float32


def test_single_precision_is_a_choice_with_a_warning(unit_tokens):
    tokens, head = unit_tokens(2)
    with pytest.warns(PrecisionWarning, match="float32") as found:
        run = train(tokens, head, STEP, steps=30, dtype="float32")
    assert run.W().dtype == np.float32
    assert found[0].filename == __file__  # where it was asked for
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        double = train(tokens, head, STEP, steps=30)
    np.testing.assert_allclose(run.W(), double.W(), atol=1e-4)


def test_tokens_without_instances_have_an_axis_of_length_one(unit_tokens):
    tokens, head = unit_tokens(1)
    single = Tokens(tokens.keys[0], tokens.queries[0], tokens.labels[0])
    run = train(single, LinearHead(head.weight[0]), STEP, steps=20)
    np.testing.assert_array_equal(run.W(), train(tokens, head, STEP, steps=20).W())
    assert run.data.sizes["instance"] == 1


def test_causal_rows_train_with_first_rows_that_have_nothing_to_choose(rng):
    tokens = Tokens.causal(rng.normal(size=(2, 4, 8)), np.sign(rng.normal(size=(2, 4))))
    run = train(tokens, LinearHead(rng.normal(size=8)), STEP, steps=200)
    assert run.data["attended"].shape == (1, 1, len(run.steps), 2, 4)
    assert (run.data["attended"].sel(query=0) == 0).all()
    assert run.data["loss"][0, 0, -1] < run.data["loss"][0, 0, 0]
    assert (run.data["attended"].isel(step=-1) <= np.arange(4)).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "steps: 0 is not a count"),
        ({"steps": 2.5}, "steps: 2.5"),
        ({"seeds": True}, "seeds: True"),
        ({"seed": -1}, "seed: -1"),
        ({"tokens": "keys"}, "tokens: str is not Tokens"),
        ({"optimizer": optax.sgd(0.1)}, "optimizer: this optax .* Wrap it: declare"),
        ({"optimizer": 0.1}, "optimizer: float"),
        ({"head": np.ones(5)}, "head: ndarray is not a head"),
        ({"head": LinearHead(np.ones(4))}, "head: it reads vectors of dimension 4, .* have 5"),
        ({"head": LinearHead(np.ones((3, 5)))}, "head: it has 3 instances, .* have 2"),
        ({"initial": np.zeros((3, 5, 5))}, r"initial: the shape of W is \(3, 5, 5\)"),
        ({"initial": np.full((5, 5), np.nan)}, "initial: the entry at"),
        ({"loss": "hinge"}, "loss: there is none named 'hinge'"),
        ({"parameterization": "U"}, "parameterization: there is none"),
        ({"weights": "some"}, "weights: 'some'"),
        ({"dtype": "float16"}, "dtype: 'float16'"),
        ({"record": [0, 99]}, "record: it asks for steps from 0 to 99"),
    ],
)
def test_arguments_are_refused_by_name_before_any_work(unit_tokens, changes, message):
    tokens, head = unit_tokens(2)
    given = {"tokens": tokens, "head": head, "optimizer": STEP, "steps": 5} | changes
    with pytest.raises(InvalidInputError, match=message):
        train(given.pop("tokens"), given.pop("head"), given.pop("optimizer"), **given)


def test_labels_are_needed_and_must_suit_the_loss(unit_tokens):
    tokens, head = unit_tokens(2)
    bare = Tokens(tokens.keys, tokens.queries)
    with pytest.raises(InvalidInputError, match="they carry no labels"):
        train(bare, head, STEP, steps=1)
    zero_one = Tokens(tokens.keys, tokens.queries, (tokens.labels + 1) / 2)
    with pytest.raises(InvalidInputError, match=r"labels: .* logistic loss cannot use"):
        train(zero_one, head, STEP, steps=1)


def test_weights_are_kept_while_they_fit_to_the_byte(unit_tokens, monkeypatch):
    tokens, head = unit_tokens(3)
    size = train(tokens, head, STEP, steps=100).data["W"].nbytes
    for limit, kept in ((size, "all"), (size - 1, "last")):
        monkeypatch.setattr(inputs, "_WEIGHTS_BYTES", limit)
        assert train(tokens, head, STEP, steps=100).settings["weights"] == kept


@pytest.mark.parametrize(
    "loss",
    [lambda prediction, label: jnp.nan * label, lambda prediction, label: jnp.nan - prediction],
    ids=["no slope", "a slope"],
)
def test_a_loss_that_is_undefined_ends_training(unit_tokens, loss):
    tokens, head = unit_tokens(1)
    run = train(tokens, head, STEP, steps=5, loss=loss)
    assert (status_of(run) == TrialStatus.DIVERGED).all()
    assert (run.data["steps_taken"] == 0).all()
    assert np.isfinite(run.W()).all()


@pytest.mark.long
def test_heads_and_keys_whose_squares_overflow_are_trained(unit_tokens):
    tokens, head = unit_tokens(1)
    zero = np.zeros((tokens.key_dimension, tokens.query_dimension))
    settings = {"steps": 20, "initial": zero, "loss": "linear"}
    usual = train(tokens, head, STEP, **settings)
    for size in (2.0**600, 2.0**1000):
        large = train(tokens, LinearHead(size * head.weight), STEP, **settings)
        np.testing.assert_allclose(large.W(), usual.W(), rtol=1e-10)
        assert (status_of(large) == TrialStatus.TRAINED).all()
        far = Tokens(tokens.keys, tokens.queries, tokens.labels, values=size * tokens.values)
        np.testing.assert_allclose(train(far, head, STEP, **settings).W(), usual.W(), rtol=1e-10)
    for size in (2.0**-600, 2.0**600):  # of keys and values, whose product is a gradient
        other = Tokens(size * tokens.keys, tokens.queries, tokens.labels)
        assert (status_of(train(other, head, STEP, **settings)) == TrialStatus.TRAINED).all()
