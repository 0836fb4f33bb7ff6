import math

import numpy as np
import pytest

from attractor import load
from attractor.corpora import load_corpus
from attractor.files import load_tokens
from attractor.prompts import REGRESSION_LAYOUT, RegressionCase, load_head, save_regression
from attractor.prompts.regression import RegressionTask, initial_scale_bounds
from attractor.support.errors import InvalidInputError

COVARIANCE = np.array([[2.0, 0.5], [0.5, 1.0]])
EVERYTHING = {
    "covariance": COVARIANCE,
    "query_covariance": np.eye(2),
    "weight_variance": np.array(0.5),
    "label_noise": np.array(0.1),
    "query_noise": np.array(0.2),
    "length": np.array([100, 10]),
    "initial_scale": np.array(0.3),
    "initial_value": np.array(0.4),
    "time": np.array(2.0),
}


def test_everything_a_file_can_hold(write, suffix):
    assert set(EVERYTHING) == set(REGRESSION_LAYOUT)
    loaded = load(write(EVERYTHING, suffix))
    assert isinstance(loaded, RegressionCase)
    np.testing.assert_array_equal(loaded.task.covariance, COVARIANCE)
    np.testing.assert_array_equal(loaded.task.query_covariance, np.eye(2))
    found = (loaded.task.weight_variance, loaded.task.label_noise, loaded.task.query_noise)
    assert found == (0.5, 0.1, 0.2)
    assert (loaded.initial_scale, loaded.initial_value, loaded.time) == (0.3, 0.4, 2.0)
    assert loaded.lengths == (10, 100)
    assert "2" in repr(loaded) and "10, 100 tokens" in repr(loaded)


def test_a_covariance_is_enough(write, suffix):
    loaded = load(write({"covariance": COVARIANCE}, suffix))
    np.testing.assert_array_equal(loaded.task.query_covariance, COVARIANCE)
    assert loaded.lengths == (64, 256, 1024) and math.isinf(loaded.time)
    half = initial_scale_bounds(COVARIANCE).large_prompt / 2
    assert loaded.initial_scale == loaded.initial_value == pytest.approx(half)


def test_a_written_file_gives_the_same(tmp_path, write, suffix):
    loaded = load(write(EVERYTHING, suffix))
    save_regression(tmp_path / f"again{suffix}", loaded)
    again = load(tmp_path / f"again{suffix}")
    for name in ("lengths", "initial_scale", "initial_value", "time"):
        assert getattr(again, name) == getattr(loaded, name)
    np.testing.assert_array_equal(again.task.query_covariance, loaded.task.query_covariance)


def test_nothing_is_written_where_it_could_not_be_read(tmp_path):
    task = RegressionTask(np.eye(2))
    with pytest.raises(InvalidInputError, match=r"^path: "):
        save_regression(tmp_path / "task.csv", RegressionCase(task, (4,), 1.0, 1.0, 1.0))
    with pytest.raises(InvalidInputError, match=r"^length: "):
        save_regression(tmp_path / "task.npz", RegressionCase(task, (0,), 1.0, 1.0, 1.0))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changed", "argument"),
    [
        ({"covariance": None}, "covariance"),
        ({"covariance": np.ones((2, 2))}, "covariance"),
        ({"query_covariance": np.eye(3)}, "query_covariance"),
        ({"weight_variance": np.array(0.0)}, "weight_variance"),
        ({"label_noise": np.array(-1.0)}, "label_noise"),
        ({"label_noise": np.ones(2)}, "label_noise"),
        ({"query_noise": np.array(True)}, "query_noise"),
        ({"length": np.array([1.5])}, "length"),
        ({"length": np.array([])}, "length"),
        ({"length": np.array(np.inf)}, "length"),
        ({"initial_scale": np.array(0.0)}, "initial_scale"),
        ({"initial_scale": np.array(np.inf)}, "initial_scale"),
        ({"initial_value": np.array(np.nan)}, "initial_value"),
        ({"time": np.array(-1.0)}, "time"),
        ({"keys": np.eye(2)}, "keys"),
    ],
)
def test_what_cannot_be_used_is_named(write, changed, argument):
    arrays = {name: array for name, array in (EVERYTHING | changed).items() if array is not None}
    with pytest.raises(InvalidInputError, match=rf"^{argument}: "):
        load(write(arrays))


def test_readers_of_other_files_say_what_it_is(write):
    file = write(EVERYTHING)
    for reader in (load_tokens, load_corpus, load_head):
        with pytest.raises(InvalidInputError, match="a task of in-context regression"):
            reader(file)
