"""Every scene makes its point, on the page and by the library."""

import json
from pathlib import Path

import numpy as np
import pytest

from attractor.explorer import scene_named, scene_names
from attractor.explorer.answers import report_on

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
    ends = zip(report["ends"], readings["trainings"], state["trainings"], strict=True)
    for end, reading, training in ends:
        if len(reading["point"]) == len(end):  # not of factors, of which their product is shown
            # Where ordinary floating point loses the gradient, what is left is its rounding.
            exact = 1e-3 if training.get("plain") else 1e-6
            np.testing.assert_allclose(reading["point"], end, rtol=exact)
