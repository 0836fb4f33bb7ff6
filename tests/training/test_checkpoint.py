import dataclasses
import errno
import itertools
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attractor.support.errors import FileFormatError, InvalidInputError, TrialStatus
from attractor.support.storage import owned_folder
from attractor.training import loop
from attractor.training.stored import checkpoint as checkpoint_file, saved_run
from attractor.training.stored.checkpoint import MARKER

TRIALS, RECORDED = 60, [0, 3, 50, 200, 1000]


@dataclasses.dataclass(frozen=True)
class LogisticMap(loop.Objective):
    """A chaotic map with a random kick: state of several types, one of them a random key."""

    rate: float = 3.9

    def step(self, state, data):
        key, kick = jax.random.split(state["key"])
        new = self.rate * state["x"] * (1 - state["x"]) + 1e-9 * jax.random.uniform(kick) * data
        return {"key": key, "x": new, "half": state["half"]}, jnp.int32(TrialStatus.TRAINED)

    def record(self, state, data):
        return {"x": state["x"], "sum": state["x"].sum(), "half": state["half"]}


def gather(trials):
    keys = jax.vmap(jax.random.key)(trials)
    x = np.linspace(0.2, 0.7, 5) + 1e-3 * trials[:, None]
    half = jnp.asarray(trials, jnp.bfloat16)
    return {"key": keys, "x": x, "half": half}, np.ones(len(trials))


def run(folder=None, *, objective=None, every=0.0, settings=None, data=None, **options):
    checkpoint = None
    if folder is not None:
        checkpoint = loop.Checkpoint(folder, settings or {}, data or {}, every)
    options = {"recorded": RECORDED, "count": TRIALS, **options}
    return loop.run(
        objective or LogisticMap(),
        options.pop("gather", gather),
        last_only=frozenset({"half"}),
        checkpoint=checkpoint,
        **options,
    )


@pytest.fixture(scope="module")
def expected():
    return run()


def assert_same(one, other):
    assert one.series.keys() == other.series.keys()
    for name, array in one.series.items():
        assert array.dtype == other.series[name].dtype
        assert array.tobytes() == other.series[name].tobytes()
    np.testing.assert_array_equal(one.status, other.status)
    np.testing.assert_array_equal(one.steps_taken, other.steps_taken)


def interrupted(folder, steps, **options):
    """A run that is interrupted after some trial steps."""
    done = []

    def advance(amount):
        done.append(amount)
        if sum(done) >= steps:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(folder, advance=advance, **options)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("steps", [0, 80, 5000, 25_000])
def test_an_interrupted_run_goes_on_where_it_was(tmp_path, expected, steps):
    interrupted(tmp_path / "run", steps)
    skipped, advanced = [], []
    resumed = run(tmp_path / "run", skip=skipped.append, advance=advanced.append)
    assert_same(resumed, expected)
    assert skipped[0] >= steps
    assert skipped[0] + sum(advanced) == TRIALS * RECORDED[-1]


def test_a_checkpoint_changes_no_number(tmp_path, expected):
    assert_same(run(tmp_path, every=1e9), expected)
    assert names(tmp_path) == [MARKER, "measurements-000000.safetensors", "state.safetensors"]


def test_a_complete_run_is_read_and_not_trained_again(tmp_path, expected, monkeypatch):
    run(tmp_path)

    def untouched(*arguments):
        raise AssertionError("trained again")

    monkeypatch.setattr(loop.BlockTrainer, "train", untouched)
    monkeypatch.setattr(loop.BlockTrainer, "compile", untouched)
    assert_same(run(tmp_path), expected)


def test_measurements_are_written_once(tmp_path):
    run(tmp_path)
    parts = [saved_run._load(path) for path in sorted(tmp_path.glob("measurements-*"))]
    assert len(parts) > 1
    ranges = np.concatenate([part["ranges"] for part in parts])
    for block in range(3):
        own = ranges[ranges[:, 0] == block]
        assert own[0, 1] == 0 and own[-1, 2] == len(RECORDED)
        np.testing.assert_array_equal(own[1:, 1], own[:-1, 2])


def test_what_killed_writes_left_is_removed_and_ignored(tmp_path, expected):
    interrupted(tmp_path, 5000)
    parts = sorted(tmp_path.glob("measurements-*"))
    uncounted = tmp_path / f"measurements-{len(parts):06d}.safetensors"
    uncounted.write_bytes(parts[0].read_bytes()[:-7])
    (tmp_path / ".state.partial-abc.safetensors").write_bytes(b"half")
    assert_same(run(tmp_path, every=1e9), expected)
    assert not list(tmp_path.glob(".*"))


def test_a_folder_in_which_only_the_first_write_was_killed_is_ours(tmp_path, expected):
    (tmp_path / f".{MARKER.removesuffix('.json')}.partial-abc.json").write_text("{")
    assert_same(run(tmp_path), expected)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *itertools.product(
            ["state", "measurements-000000"], ["truncated", "flipped", "zeros", "empty"]
        ),
        ("measurements-000000", "missing"),  # without a state, a run begins anew
    ],
)
def test_damage_is_an_error(tmp_path, name, damage):
    interrupted(tmp_path, 5000)
    file = tmp_path / f"{name}.safetensors"
    contents = bytearray(file.read_bytes())
    if damage == "missing":
        file.unlink()
    else:
        contents[-20] ^= 4
        changed = {
            "truncated": contents[:-9],
            "flipped": contents,
            "zeros": bytes(len(contents)),
            "empty": b"",
        }
        file.write_bytes(changed[damage])
    with pytest.raises(FileFormatError, match=rf"{name}.*damaged or missing"):
        run(tmp_path)


def test_a_state_that_counts_other_records_is_an_error(tmp_path):
    interrupted(tmp_path, 5000)
    state = saved_run._load(tmp_path / "state.safetensors")
    state["records"] = state["records"] + 1
    saved_run._save(tmp_path / "state.safetensors", state)
    with pytest.raises(FileFormatError, match="other records"):
        run(tmp_path)


def test_a_state_of_another_form_is_an_error(tmp_path):
    interrupted(tmp_path, 5000)
    state = saved_run._load(tmp_path / "state.safetensors")
    name = next(name for name in state if name.endswith("['x']"))
    state[name] = state[name][..., None]
    saved_run._save(tmp_path / "state.safetensors", state)
    with pytest.raises(FileFormatError, match="another form"):
        run(tmp_path)


def test_a_damaged_marker_is_an_error(tmp_path):
    run(tmp_path)
    for text in ("{", "[]", '{"format": "attractor checkpoint 1"}'):
        (tmp_path / MARKER).write_text(text)
        with pytest.raises(FileFormatError, match="damaged"):
            run(tmp_path)


def test_another_run_is_refused_by_name(tmp_path):
    settings = {"optimizer": {"learning_rate": 0.1}, "loss": "logistic", "p": np.float64(2)}
    data = {"keys": np.arange(3.0), "labels": None}
    run(tmp_path, settings=settings, data=data)
    other = {**settings, "optimizer": {"learning_rate": 0.2}}
    with pytest.raises(InvalidInputError, match=r"optimizer\.learning_rate was 0\.1 and is 0\.2"):
        run(tmp_path, settings=other, data=data)
    with pytest.raises(InvalidInputError, match="the values of keys differ"):
        run(tmp_path, settings=settings, data={**data, "keys": np.arange(3.0) + 1e-16 * 5})
    with pytest.raises(InvalidInputError, match="the values of recorded steps differ"):
        run(tmp_path, settings=settings, data=data, recorded=[0, 3, 50, 200, 2000])
    with pytest.raises(InvalidInputError, match="trials was 60 and is 61"):
        run(tmp_path, settings=settings, data=data, count=61)
    with pytest.raises(InvalidInputError, match=r"stop was None and is .*never"):
        run(tmp_path, settings=settings, data=data, stop=never)
    with pytest.raises(InvalidInputError, match="the compiled step differs"):
        run(tmp_path, settings=settings, data=data, objective=LogisticMap(3.8))
    run(tmp_path, settings=settings, data=data)


def never(record):
    return record["sum"] > 1e9


def test_another_jax_may_read_a_complete_run_only(tmp_path, expected, monkeypatch):
    interrupted(tmp_path / "part", 5000)
    run(tmp_path / "whole")
    monkeypatch.setattr(checkpoint_file.jax, "__version__", "99.0")
    with pytest.raises(InvalidInputError, match=r"jax was .* and is '99\.0'"):
        run(tmp_path / "part")
    assert_same(run(tmp_path / "whole"), expected)


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InvalidInputError, match=r"checkpoint: .* did not write"):
        run(tmp_path)
    assert names(tmp_path) == ["thesis.tex"]
    with pytest.raises(InvalidInputError, match="is a file"):
        run(tmp_path / "thesis.tex")


def test_two_runs_do_not_share_a_folder(tmp_path, expected):
    with (
        owned_folder(tmp_path, MARKER, argument="checkpoint"),
        pytest.raises(InvalidInputError, match="another run is writing"),
    ):
        run(tmp_path)
    assert_same(run(tmp_path), expected)


def test_a_failed_write_ends_the_run_and_leaves_the_last_one_in_force(
    tmp_path, expected, monkeypatch
):
    real, calls = Path.write_bytes, []

    def full(path, content):
        calls.append(path)
        if len(calls) > 4:
            real(path, content[: len(content) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, content)

    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="No space left"):
            run(tmp_path)
    assert not list(tmp_path.glob(".*"))
    assert_same(run(tmp_path), expected)


def test_the_marker_is_readable_and_names_functions(tmp_path):
    run(tmp_path, settings={"metric": never, "values": (1, None)})
    found = json.loads((tmp_path / MARKER).read_text())
    assert found["settings"]["metric"].endswith("test_checkpoint.never")
    assert found["settings"]["values"] == [1, None]
