"""Files of in-context tasks: what they hold, and what is refused."""

import numpy as np
import pytest

from attractor import load
from attractor.corpora import load_corpus
from attractor.files import load_tokens
from attractor.files.contents import Trial
from attractor.papers.hypotheses_table import check_hypotheses
from attractor.papers.large_prompt.in_context import small
from attractor.prompts import IN_CONTEXT_LAYOUT, InContextCase, load_head, save_in_context
from attractor.prompts.in_context import HUBER, SQUARED, Loss, built_in, transfer_of_samples
from attractor.prompts.measures import Empirical, Gaussian
from attractor.support.errors import InvalidInputError

RANDOM = np.random.default_rng(0)
EVERYTHING = {
    "prompts": RANDOM.normal(size=(20, 16, 3)),
    "queries": RANDOM.normal(size=(20, 3)),
    "labels": RANDOM.normal(size=20),
    "token_covariance": np.stack([(1 + place / 20) * np.eye(3) for place in range(20)]),
    "sigma": RANDOM.uniform(1, 2, size=300),
    "loss": np.array(2),
    "length": np.array([8, 4]),
    "time": np.array(2.0),
}
NEEDED = {name: EVERYTHING[name] for name in ("prompts", "queries", "labels")}


def test_everything_a_file_can_hold(write, suffix):
    assert set(EVERYTHING) == set(IN_CONTEXT_LAYOUT)
    loaded = load(write(EVERYTHING, suffix))
    assert isinstance(loaded, InContextCase)
    assert loaded.loss is HUBER and loaded.lengths == (4, 8) and loaded.time == 2.0
    train, held_out = loaded.samples()
    np.testing.assert_array_equal(train.prompts, EVERYTHING["prompts"][::2])
    np.testing.assert_array_equal(held_out.labels[:, 0], EVERYTHING["labels"][1::2])
    assert train.exact and isinstance(train.limit, Gaussian)
    assert "20 tasks, 16 tokens of 3 entries" in repr(loaded)


def test_the_longest_prompts_stand_for_infinite_ones_and_say_how_far_they_are_off(write, suffix):
    loaded = load(write(NEEDED, suffix))
    assert loaded.loss is SQUARED and loaded.lengths == (1, 4) and loaded.time == 30.0
    train, held_out = loaded.samples()
    assert not train.exact and isinstance(train.limit, Empirical)
    np.testing.assert_array_equal(train.limit.points, train.prompts)
    found = transfer_of_samples(train, held_out, loaded.loss, loaded.lengths, [0, 0.5])
    assert (found.data["limit_error"] > 0).all() and "many tokens, off by about" in str(found)


def test_a_written_file_gives_the_same(tmp_path, write, suffix):
    loaded = load(write(EVERYTHING, suffix))
    save_in_context(tmp_path / f"again{suffix}", loaded)
    (again,) = load(tmp_path / f"again{suffix}").data_sets()
    assert again.hash == loaded.hash and again.lengths == loaded.lengths
    assert loaded.replace(time=3.0).hash != loaded.hash


def test_tasks_of_a_law_are_kept_with_what_is_known_of_it(tmp_path):
    case = InContextCase.of_task(built_in(2)["noisy"], 16, 32, (4, 8), sigmas=64)
    case.save(tmp_path / "tasks.npz")
    assert load(tmp_path / "tasks.npz").hash == case.hash
    assert case.token_covariance.shape == (16, 3, 3) and case.sigma.shape == (64,)
    unknown = InContextCase.of_task(built_in(2)["index"], 16, 32, (4, 8), sigmas=64)
    assert unknown.token_covariance is None
    task = type(built_in(2)["noisy"])(
        built_in(2)["noisy"].regression, loss=Loss("own", SQUARED.value)
    )
    with pytest.raises(InvalidInputError, match="own"):
        InContextCase.of_task(task, 16, 32, (4, 8))


def test_hypotheses_are_reported_of_a_file():
    table = check_hypotheses(small().replace(time=0.5))
    met = {name: met for name, met, _ in table.rows}
    assert met["a 1-smooth loss"] and met["light sub-Gaussian parameters"]
    assert not met["training that settles"] and not met["time to compare paths"]


def test_tasks_that_a_counterexample_does_not_need_go_by_halves():
    case = InContextCase.of_task(built_in(2)["noisy"], 64, 16, (4, 8), sigmas=64)
    smaller = case.smaller(Trial(lambda candidate: len(candidate.prompts) >= 16, 100, {}))
    assert smaller.prompts.shape == (16, 16, 3) and smaller.token_covariance.shape == (16, 3, 3)
    np.testing.assert_array_equal(smaller.prompts, case.prompts[:16])


@pytest.mark.parametrize(
    ("changed", "argument"),
    [
        ({"queries": None}, "queries"),
        ({"labels": None}, "labels"),
        ({"prompts": np.ones((4, 16, 3))}, "prompts"),
        ({"prompts": np.ones((20, 3))}, "prompts"),
        ({"prompts": np.full((20, 16, 3), np.nan)}, "prompts"),
        ({"queries": np.ones((20, 4))}, "queries"),
        ({"labels": np.ones(19)}, "labels"),
        ({"labels": np.ones((20, 3))}, "labels"),
        ({"labels": np.array(1.0)}, "labels"),
        ({"token_covariance": np.ones((20, 3, 4))}, "token_covariance"),
        ({"token_covariance": np.tile(-np.eye(3), (20, 1, 1))}, "token_covariance"),
        ({"sigma": np.array([1.0, 0.0])}, "sigma"),
        ({"loss": np.array(3)}, "loss"),
        ({"loss": np.array(0.5)}, "loss"),
        ({"length": np.array([17])}, "length"),
        ({"length": np.array([0])}, "length"),
        ({"time": np.array(0.0)}, "time"),
        ({"time": np.array(np.inf)}, "time"),
        ({"keys": np.eye(2)}, "keys"),
    ],
)
def test_what_cannot_be_used_is_named(write, changed, argument):
    arrays = {name: array for name, array in (EVERYTHING | changed).items() if array is not None}
    with pytest.raises(InvalidInputError, match=rf"^{argument}: "):
        load(write(arrays))


def test_nothing_is_written_where_it_could_not_be_read(tmp_path):
    case = InContextCase(*(np.asarray(NEEDED[name]) for name in NEEDED), lengths=(4,))
    with pytest.raises(InvalidInputError, match=r"^path: "):
        save_in_context(tmp_path / "tasks.csv", case)
    with pytest.raises(InvalidInputError, match=r"^length: "):
        save_in_context(tmp_path / "tasks.npz", case.replace(lengths=(99,)))
    assert not list(tmp_path.iterdir())


def test_readers_of_other_files_say_what_it_is(write):
    file = write(EVERYTHING)
    for reader in (load_tokens, load_corpus, load_head):
        with pytest.raises(InvalidInputError, match="in-context tasks with prompts"):
            reader(file)
