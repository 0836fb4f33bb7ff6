import jax
import numpy as np
import optax
import pytest

from attractor.attention import LinearHead
from attractor.geometry import Frobenius
from attractor.support.errors import InvalidInputError, TrialStatus
from attractor.tokens import Tokens
from attractor.training import declare, normalized_gradient_descent, train
from attractor.training.loop import BlockTrainer

OPTIMIZER = normalized_gradient_descent(0.1)


def small_norm(record):
    return record["norm"] > 4


def same(one, other):
    assert set(one.data) == set(other.data)
    return all(
        one.data[name].to_numpy().tobytes() == other.data[name].to_numpy().tobytes()
        for name in one.data
    )


def run(data, folder=None, *, optimizer=OPTIMIZER, steps=100, **options):
    options = {"seeds": 4, "stop": small_norm, "checkpoint_every": 0, **options}
    return train(*data, optimizer, steps=steps, checkpoint=folder, **options)


@pytest.mark.long
def test_training_goes_on_where_it_was_interrupted(unit_tokens, tmp_path, monkeypatch):
    """In the midst of an epoch, too: its order follows from the step."""
    data, batches = unit_tokens(10), {"batch_size": 1, "batch_order": "shuffled"}
    expected = run(data, **batches)
    real, stretches = BlockTrainer.train, []

    def interrupted(*arguments):
        for place in real(*arguments):
            yield place
            stretches.append(place)
            if len(stretches) == 30:
                raise KeyboardInterrupt

    monkeypatch.setattr(BlockTrainer, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(data, tmp_path, **batches)
    monkeypatch.setattr(BlockTrainer, "train", real)
    resumed = run(data, tmp_path, **batches)
    assert same(resumed, expected)
    assert resumed.settings == expected.settings
    assert same(run(data, tmp_path, **batches), expected)
    with pytest.raises(InvalidInputError, match="batch_order"):
        run(data, tmp_path, **batches | {"batch_order": "cyclic"})


def test_trials_that_meet_the_condition_stop_where_it_was_recorded(unit_tokens):
    trajectory = run(unit_tokens(10), record=[0, 20, 45, 100])
    norm, status = trajectory.data["norm"].to_numpy(), trajectory.data["status"].to_numpy()
    steps = trajectory.data["steps_taken"].to_numpy()
    met = norm > 4
    assert (met.any(-1) == (status == TrialStatus.STOPPED)).all() and met.any()
    first = np.where(met.any(-1), met.argmax(-1), 3)
    np.testing.assert_array_equal(steps, np.array([0, 20, 45, 100])[first])
    assert "stopped" in str(trajectory)


def test_another_run_is_refused_by_what_differs(unit_tokens, tmp_path):
    data = tokens, head = unit_tokens(2)
    run(data, tmp_path, steps=5)

    def refused(message, data=data, **options):
        with pytest.raises(InvalidInputError, match=f"checkpoint: .*{message}"):
            run(data, tmp_path, **{"steps": 5, **options})

    refused(r"learning_rate was 0\.1 and is 0\.2", optimizer=normalized_gradient_descent(0.2))
    refused("steps was 5 and is 6", steps=6)
    refused("seed was 0 and is 1", seed=1)
    refused("stop was .*small_norm' and is None", stop=None)
    refused("loss was 'logistic' and is 'linear'", loss="linear")
    refused("initial was 'random' and is 'given'", initial=np.zeros((5, 5)))
    refused("the values of head.*weight differ", data=(tokens, LinearHead(-head.weight)))
    moved = Tokens(tokens.keys * (1 + 1e-15), tokens.queries, tokens.labels)
    refused(r"the values of tokens\.keys, tokens\.values differ", data=(moved, head))


def test_functions_of_optax_are_told_apart_by_the_program_they_compile_to(unit_tokens, tmp_path):
    def optimizer(rate):
        return declare(optax.sgd(rate), geometry=Frobenius())

    data = unit_tokens(2)
    run(data, tmp_path, optimizer=optimizer(0.1), steps=5)
    run(data, tmp_path, optimizer=optimizer(0.1), steps=5)
    with pytest.raises(InvalidInputError, match="the compiled step differs"):
        run(data, tmp_path, optimizer=optimizer(0.2), steps=5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checkpoint_every": -1}, "checkpoint_every: -1"),
        ({"checkpoint_every": float("nan")}, "checkpoint_every: nan"),
        ({"folder": 3}, "checkpoint: 3 is not a path"),
        ({"stop": "soon"}, "stop: 'soon' is not a function"),
        ({"stop": lambda record: record["lss"] > 0}, "stop: it reads 'lss'"),
    ],
)
def test_bad_arguments_are_refused_by_name(unit_tokens, options, message):
    assert not jax.config.jax_enable_x64
    with pytest.raises(InvalidInputError, match=message):
        run(unit_tokens(2), **options)
