"""What a stranger wrote into a link, file or notebook: nothing runs, all is shown or refused."""

import json
import urllib.parse

import pytest

from attractor.explorer import scene_named
from fuzzing.explorer_states import Shared, Visited, judge, shared, surprises

MARKUP = [["img", {"src": "x", "onerror": "canary()"}]]
PLANE = {"kind": "principal", "origin": [0, 0], "axes": [[1, 0], [0, 1]], "hidden": 0}
CODE = '0, **__import__("os").system("id") or {}'


@pytest.fixture
def visited(chromium, tmp_path):
    """A page that forbids nothing, as pages of the documentation do."""
    page = Visited(chromium, tmp_path)
    yield page
    page.page.context.close()


def link(change):
    return Shared("link", f"explorer:two-basins&{urllib.parse.quote(change, safe='=&')}")


def state(**change):
    return json.dumps(scene_named("two-basins") | change)


@pytest.mark.parametrize(
    "one",
    [
        link(f"title={json.dumps(MARKUP)}"),
        Shared("file", state(projection=PLANE | {"words": MARKUP})),
        Shared("notebook", state(title=MARKUP)),
        Shared("notebook", state(point=[["script", {}, "canary()"]])),
        Shared("answer", json.dumps({"state": "", "message": MARKUP})),
        link(f"trainings.0.weight_decay='{CODE}"),
        link("keys.length=1000000000"),
        link("__proto__.polluted=1"),
        link("theme=[" * 1000),
        Shared("file", "{"),
    ],
    ids=lambda one: f"{one.kind} {one.text[:60]}",
)
def test_it_is_refused_in_words(visited, one):
    found = visited.give(one)
    assert judge(one, found) == [] and not found["shown"]


def test_what_is_text_is_shown_as_text(visited):
    found = visited.give(Shared("file", state(title="<img src=x onerror=canary()>")))
    assert found["shown"] and found["ran"] == found["strange"] == []


def test_a_refused_link_leaves_the_scene_of_the_page(show):
    shown = show("two-basins", address="#explorer:&steps=1000000000")
    said = shown.page.get_by_role("alert").inner_text()
    assert said.startswith("This link cannot be shown: state.steps has to be a whole number from 1")
    assert shown.state["keys"] == scene_named("two-basins")["keys"]
    shown.token(0, 0).focus()
    shown.page.keyboard.press("ArrowLeft")
    shown.settled()
    assert shown.page.get_by_role("alert").count() == 0  # it is of no use any more


def test_a_setting_that_a_page_does_not_take_is_refused_and_the_rest_stays(show):
    shown = show("two-basins")
    shown.page.get_by_role("spinbutton", name="step").fill("1e300")
    shown.page.keyboard.press("Enter")
    said = shown.page.get_by_role("alert").inner_text()
    assert "learning_rate has to be a number above 0" in said
    assert shown.state["trainings"][0]["learning_rate"] == 0.1


@pytest.mark.parametrize("first", range(0, 160, 40))
def test_nothing_of_fuzzed_states_runs(visited, first):
    for number in range(first, first + 40):
        one = shared(number, 3)
        assert judge(one, visited.give(one)) == [], one


def test_code_among_lines_of_python_is_found():
    assert surprises("x = at.train(0.1)") == []
    assert "__import__" in surprises(f"at.gradient_descent(0.1, weight_decay={CODE})")
