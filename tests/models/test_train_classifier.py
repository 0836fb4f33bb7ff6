import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import runs
from runs import ADAM, CLASSIFIER as SETTINGS

from attractor.models import (
    ClassificationData,
    Examples,
    VisionTransformerConfig,
    head_matrices,
    load_model,
    save_model,
    train_classifier,
)
from attractor.models._train_classifier import ClassifierTrials
from attractor.models.classifier_training import ClassifierTraining, EarlyStop, Labeled
from attractor.support.errors import InvalidInputError, TrialStatus
from attractor.support.precision import double_precision
from attractor.training import mirror_descent

from .conftest import forward

CONFIG = runs.text_config()


@pytest.fixture
def data():
    return runs.classified_texts()


@pytest.fixture
def trained():
    return runs.text_classifiers()


def accuracy(model, examples):
    logits = forward(model, examples.inputs, examples.mask)
    return ((np.asarray(logits) > 0) == examples.labels).mean()


@pytest.mark.long
def test_learns_and_measures_what_it_learned(trained, data):
    found = trained.to_xarray()
    assert dict(found.sizes) == {"seed": 2, "epoch": 6}
    assert found["seed"].values.tolist() == [3, 4]
    assert (found["train_loss"][:, -1] < found["train_loss"][:, 0]).all()
    assert (found["status"] == TrialStatus.TRAINED).all()
    assert (found["epochs_taken"] == 6).all()
    for seed in (3, 4):
        of_seed = found.sel(seed=seed)
        validation = of_seed["validation_accuracy"].values
        assert of_seed["best_epoch"] == validation.argmax() + 1  # the first of several
        best, last = trained.model(seed), trained.model(seed, "last")
        assert accuracy(best, data.validation) == pytest.approx(validation.max())
        assert accuracy(best, data.test) == pytest.approx(
            float(of_seed["test_accuracy_at_best_epoch"])
        )
        assert accuracy(last, data.test) == pytest.approx(float(of_seed["last_test_accuracy"]))
        assert of_seed["last_test_accuracy"] == of_seed["test_accuracy"][-1]
        assert of_seed["best_test_accuracy_over_epochs"] == of_seed["test_accuracy"].max()
        logits = forward(last, data.test.inputs, data.test.mask)
        losses = np.logaddexp(0, np.where(data.test.labels == 1, -logits, logits))
        assert losses.mean() == pytest.approx(float(of_seed["test_loss"][-1]), rel=1e-5)


def test_prints_and_shows_itself(trained):
    assert "test accuracy at the best epoch" in str(trained)
    assert "2: 2 trained" in trained._repr_html_()
    with pytest.raises(InvalidInputError, match="seed"):
        trained.model(0)
    with pytest.raises(InvalidInputError, match="epoch"):
        trained.model(3, "first")


def test_models_can_be_kept(trained, tmp_path):
    save_model(tmp_path / "model.safetensors", trained.model(4))
    found = load_model(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(head_matrices(found)["W"], head_matrices(trained.model(4))["W"])


def test_a_seed_alone_gives_the_numbers_it_gives_among_others(trained, data):
    alone = train_classifier(CONFIG, data, ADAM, **SETTINGS | {"seeds": 1, "seed": 4})
    for name in ("train_loss", "validation_accuracy", "test_loss"):
        np.testing.assert_array_equal(alone.data[name].sel(seed=4), trained.data[name].sel(seed=4))
    assert (trained.data["train_loss"].sel(seed=3) != trained.data["train_loss"].sel(seed=4)).all()


def test_goes_on_after_an_interruption_with_the_very_numbers(trained, data, tmp_path):
    class Interrupted(Exception):
        pass

    done = []

    def interrupt(amount):
        done.append(amount)
        if sum(done) >= 25:
            raise Interrupted

    settings = SETTINGS | {"checkpoint": tmp_path / "run", "checkpoint_every": 0}
    with pytest.raises(Interrupted):
        train_classifier(CONFIG, data, ADAM, progress=interrupt, **settings)
    taken = []
    resumed = train_classifier(CONFIG, data, ADAM, progress=taken.append, **settings)
    assert sum(taken) == 2 * 6 * 6  # what was done before is told, too
    assert resumed.data.equals(trained.data)
    for seed in (3, 4):
        for epoch in ("best", "last"):
            same = jax.tree.map(
                lambda a, b: bool((a == b).all()),
                resumed.model(seed, epoch),
                trained.model(seed, epoch),
            )
            assert all(jax.tree.leaves(same))
    with pytest.raises(InvalidInputError, match="checkpoint"):
        train_classifier(CONFIG, data, ADAM, **settings | {"seed": 5})


def test_stops_early(trained, data):
    stopped = train_classifier(CONFIG, data, ADAM, patience=1, **SETTINGS)
    found = stopped.data
    for seed in (3, 4):
        curve = trained.data["validation_accuracy"].sel(seed=seed).values
        worse = [e for e in range(1, 6) if curve[e] <= curve[:e].max()]
        epochs = worse[0] + 1 if worse else 6
        assert found["epochs_taken"].sel(seed=seed) == epochs
        stopped_here = found["validation_accuracy"].sel(seed=seed).values
        np.testing.assert_array_equal(stopped_here[:epochs], curve[:epochs])
        assert np.isnan(stopped_here[epochs:]).all()


@pytest.mark.parametrize(
    ("patience", "target", "expected"),
    [(3, None, False), (2, None, True), (None, 0.91, False), (None, 0.9, True), (3, 0.5, True)],
)
def test_has_trained_enough(patience, target, expected):
    record = {"epoch": 7, "best_epoch": 5, "train_accuracy": jnp.array(0.9)}
    assert bool(EarlyStop(patience, target)(record)) == expected


def test_each_epoch_goes_once_through_all_examples():
    """Eleven examples in batches of four; what fills up the last batch does not count."""
    training = ClassifierTraining(ADAM, 11, 4, "mean", 4)
    words = jax.random.key_data(jax.random.key(0))
    places = jax.jit(jax.vmap(lambda step: training.places(step, words)))
    found, counted = places(jnp.arange(6))
    assert counted.sum(1).tolist() == [4, 4, 3] * 2
    epochs = [found[:3][counted[:3]], found[3:][counted[3:]]]
    for order in epochs:
        assert sorted(order.tolist()) == list(range(11))
    assert (epochs[0] != epochs[1]).any()


def test_inputs_are_augmented_in_training_alone():
    def model(inputs, mask, key):
        return inputs

    def noisy(key, inputs):
        return inputs + jax.random.uniform(key, inputs.shape)

    examples = Labeled(jnp.zeros((3, 2)), jnp.zeros(3, int), None)
    training = ClassifierTraining(ADAM, 3, 3, "mean", 3, noisy, lambda inputs: inputs - 1)
    drawn = [training.logits(model, examples, jax.random.key(seed)) for seed in (0, 0, 1)]
    assert (np.asarray(drawn) > 0).all()
    assert (drawn[0] == drawn[1]).all()
    assert (drawn[0] != drawn[2]).all()
    assert (training.logits(model, examples) == -1).all()


def test_all_seeds_can_start_from_one_model(trained, data):
    settings = SETTINGS | {"epochs": 6, "same_initial_model": True}
    found = train_classifier(CONFIG, data, ADAM, **settings)
    equal = found.data["train_loss"].values == trained.data["train_loss"].values
    assert equal[0].all()
    assert not equal[1].any()


def start_of(training, config, data, seeds, dtype="float32"):
    """The initial models of seeds."""
    trials = ClassifierTrials(training, config, data, seed=0, same_initial_model=False, dtype=dtype)
    states = [trials(np.array([seed]))[0] for seed in seeds]
    return [jax.tree.map(lambda leaf: leaf[0], state.model) for state in states]


def lost(sign):
    """Turns the gradient into NaN in models whose first number has a sign."""

    def update(updates, state, params):
        factor = jnp.where(jnp.sign(params.tokens[0, 0]) == sign, jnp.nan, 1)
        return jax.tree.map(lambda leaf: leaf * factor, updates), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


@pytest.mark.long
def test_a_diverged_seed_is_recorded_and_the_others_go_on(data):
    """And the step of the others is gradient descent on the mean, written out."""
    few = ClassificationData(Examples(data.train.inputs[:20], data.train.labels[:20]))
    config = dataclasses.replace(CONFIG, dropout=0.0)
    optimizer = optax.chain(lost(1), optax.sgd(0.1))
    starts = start_of(ClassifierTraining(optimizer, 20, 20, "mean", 250), config, few, range(4))
    signs = [np.sign(float(model.tokens[0, 0])) for model in starts]
    assert len(set(signs)) == 2
    found = train_classifier(config, few, optimizer, epochs=1, batch=20, seeds=4)
    survives, diverges = signs.index(-1), signs.index(1)
    expected = [TrialStatus.DIVERGED if sign == 1 else TrialStatus.TRAINED for sign in signs]
    assert found.data["status"].values.tolist() == expected
    assert np.isnan(found.data["train_loss"].sel(seed=diverges)).all()
    assert found.data["epochs_taken"].sel(seed=diverges) == 0
    kept = found.model(diverges, "last")
    np.testing.assert_array_equal(kept.tokens, starts[diverges].tokens)
    assert "diverged" in str(found)

    def mean_loss(model):
        logits = model(jnp.asarray(few.train.inputs))
        return jnp.logaddexp(0, jnp.where(few.train.labels == 1, -logits, logits)).mean()

    loss, gradient = jax.jit(jax.value_and_grad(mean_loss))(starts[survives])
    moved = jax.tree.map(lambda w, g: w - 0.1 * g, starts[survives], gradient)
    after = found.model(survives, "last")
    for name in ("tokens", "positions"):
        np.testing.assert_allclose(getattr(after, name), getattr(moved, name), atol=1e-6)
    assert found.data["train_loss"].sel(seed=survives)[0] == pytest.approx(float(loss), rel=1e-5)


def scaled(images):
    return images / 255.0


@pytest.mark.long
def test_images_are_learned_by_mirror_descent_on_the_sum(rng):
    """Weights of p = 1.1 change as the map of their images says; nothing is normalized."""
    config = VisionTransformerConfig(
        image=(4, 4), channels=1, patch=2, classes=3, width=8, blocks=1, heads=2, hidden=16,
        dropout=0.0, embedding_dropout=0.0,
    )  # fmt: skip
    labels = rng.integers(0, 3, 12)
    pixels = rng.integers(0, 80, (12, 4, 4, 1)) + 80 * labels[:, None, None, None]
    data = ClassificationData(Examples(pixels.astype(np.uint8), labels))
    optimizer = mirror_descent(1e-3, p=1.1, normalize=False)
    training = ClassifierTraining(optimizer, 12, 12, "sum", 250, None, scaled)
    found = train_classifier(
        config,
        data,
        optimizer,
        epochs=1,
        batch=12,
        reduction="sum",
        prepare=scaled,
        dtype="float64",
    )
    assert found.settings["optimizer"]["p"] == 1.1
    assert "mirror descent" in str(found)
    with double_precision():
        (start,) = start_of(training, config, data, [0], "float64")

        def total(model):
            logits = model(jnp.asarray(pixels / 255.0))
            return -jax.nn.log_softmax(logits)[np.arange(12), labels].sum()

        gradient = jax.jit(jax.grad(total))(start)
        after = found.model(0)
    assert found.data["best_epoch"] == 1  # the last, as there are no validation examples
    assert "test_accuracy_at_best_epoch" not in found.data
    for name in ("keys", "values"):
        before = np.asarray(getattr(start.blocks[0].attention, name))
        slope = np.asarray(getattr(gradient.blocks[0].attention, name))
        image = np.sign(before) * np.abs(before) ** 0.1 - 1e-3 * slope
        expected = np.sign(image) * np.abs(image) ** 10
        np.testing.assert_allclose(
            getattr(after.blocks[0].attention, name), expected, rtol=1e-9, atol=1e-15
        )


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("config", {"config": 3}),
        ("data", {"data": 3}),
        ("optimizer", {"optimizer": "adam"}),
        ("epochs", {"epochs": 0}),
        ("batch", {"batch": 111}),
        ("seeds", {"seeds": -1}),
        ("seed", {"seed": -1}),
        ("reduction", {"reduction": "max"}),
        ("patience", {"patience": 0}),
        ("target_train_accuracy", {"target_train_accuracy": 99.5}),
        ("dtype", {"dtype": "float16"}),
        ("augment", {"augment": 3}),
        ("train", {"config": dataclasses.replace(CONFIG, vocabulary=11)}),
        ("ids", {"config": dataclasses.replace(CONFIG, length=4)}),
        ("mask", {"config": VisionTransformerConfig(image=(4, 4), classes=2)}),
        ("checkpoint_every", {"checkpoint_every": -1}),
    ],
)
def test_refuses_what_cannot_be_used(data, argument, change):
    arguments = {"config": CONFIG, "data": data, "optimizer": ADAM, "epochs": 1} | change
    with pytest.raises(InvalidInputError, match=f"^{argument}: "):
        train_classifier(**arguments)


def test_refuses_labels_that_the_model_has_no_class_for(data):
    third = Examples(data.test.inputs, np.full(100, 2), data.test.mask)
    with pytest.raises(InvalidInputError, match="test: a label is 2"):
        train_classifier(CONFIG, ClassificationData(data.train, test=third), ADAM, epochs=1)


def test_patience_needs_validation_examples(data):
    with pytest.raises(InvalidInputError, match="patience"):
        train_classifier(CONFIG, ClassificationData(data.train), ADAM, epochs=1, patience=1)


@pytest.mark.long
def test_a_learning_rate_given_apart_trains_alike_and_compiles_once(trained, data):
    traced = []

    def make(learning_rate):
        traced.append(learning_rate)
        return optax.adam(learning_rate)

    found = train_classifier(CONFIG, data, make, learning_rate=1e-2, **SETTINGS)
    np.testing.assert_allclose(found.data["train_loss"], trained.data["train_loss"], rtol=1e-4)
    assert found.settings["optimizer"] == {"learning_rate": 1e-2}
    asked = sum(isinstance(rate, jax.core.Tracer) for rate in traced)
    other = train_classifier(CONFIG, data, make, learning_rate=1e-3, **SETTINGS)
    assert sum(isinstance(rate, jax.core.Tracer) for rate in traced) == asked
    assert (other.data["train_loss"][:, -1] > found.data["train_loss"][:, -1]).all()


@pytest.mark.parametrize(
    ("optimizer", "rate", "named"),
    [(ADAM, 1e-2, "optimizer"), (optax.adam, None, "optimizer"), (optax.adam, 0.0, "learning_rate"),
     (optax.adam, np.nan, "learning_rate"), (lambda rate: rate, 1e-2, "optimizer")],
)  # fmt: skip
def test_a_rate_and_an_optimizer_that_do_not_fit_are_refused(data, optimizer, rate, named):
    with pytest.raises(InvalidInputError, match=f"^{named}: "):
        train_classifier(CONFIG, data, optimizer, learning_rate=rate, **SETTINGS)


@pytest.mark.parametrize("change", [lambda ids: ids[..., None], lambda ids: ids + 0.5])
def test_refuses_texts_that_are_no_numbers_of_tokens(change):
    labels = np.array([0, 1] * 4)
    texts = Examples(change(np.full((8, 5), 3)), labels)
    with pytest.raises(InvalidInputError, match="Give integers"):
        train_classifier(CONFIG, ClassificationData(texts), ADAM, epochs=1, batch=4)
