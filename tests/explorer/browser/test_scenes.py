"""Every scene makes its point, on the page and by the library."""

import json
from pathlib import Path

import numpy as np
import pytest

from attractor.explorer import scene_named, scene_names
from attractor.explorer.answers import paths_of, report_on

EXPECTED = json.loads((Path(__file__).parents[3] / "explorer/test/scenes.json").read_text("utf-8"))


def member(readings, path):
    """A member of what a page reads, such as "trainings.0.kept"."""
    for name in path.split("."):
        if name == "length":
            return len(readings)
        readings = readings[int(name)] if isinstance(readings, list) else readings[name]
    return readings


def assert_met(expectation, readings):
    found = member(readings, expectation["reading"])
    if "is" in expectation:
        assert found == expectation["is"], expectation["words"]
    if "above" in expectation:
        assert np.max(found) > expectation["above"], expectation["words"]
    if "below" in expectation:
        assert np.max(found) < expectation["below"], expectation["words"]


def test_every_scene_says_what_is_to_be_seen():
    assert set(EXPECTED) == set(scene_names()) and all(EXPECTED.values())


@pytest.mark.parametrize("name", scene_names())
def test_a_scene_makes_its_point(show, name):
    shown = show(name)
    readings = {json.dumps(None): shown.explorer("e.readings()")}
    for expectation in EXPECTED[name]:
        change = expectation.get("change")
        key = json.dumps(change)
        if key not in readings:
            readings[key] = show(scene_named(name) | change).explorer("e.readings()")
        assert_met(expectation, readings[key])


@pytest.mark.parametrize("name", scene_names())
def test_the_library_finds_the_same(show, name):
    state = scene_named(name)
    report = report_on(state)
    readings = show(state).explorer("e.readings()")
    predicted = readings["predicted"][0]
    assert "message" not in report
    assert report["status"] == predicted["status"]
    if report["status"] == "solved":
        assert report["value"] == pytest.approx(predicted["value"], rel=1e-7)
    for k, (end, reading) in enumerate(zip(report["ends"], readings["trainings"], strict=True)):
        if state["trainings"][k].get("plain"):
            # Ordinary floating point loses the gradient, and what is left of it is rounding.
            np.testing.assert_allclose(reading["end"], end, rtol=1e-3)
            continue
        jitter = max(apart(path_ends(shaken(state, seed))[k], end) for seed in range(3))
        assert apart(reading["end"], end) <= 10 * jitter + np.finfo(float).eps


def path_ends(state):
    return [path["points"] for path in paths_of(state, [state["steps"]])]


def apart(found, wanted):
    return np.linalg.norm(np.subtract(found, wanted)) / np.linalg.norm(wanted)


def shaken(state, seed):
    """A state whose tokens and start are off by a few roundings."""
    draw = np.random.default_rng(seed)

    def off(numbers):
        if isinstance(numbers, list):
            return [off(one) for one in numbers]
        return numbers * (1 + 2.0**-50 * draw.choice([-1, 1]))

    return state | {name: off(state[name]) for name in ("keys", "start")}
