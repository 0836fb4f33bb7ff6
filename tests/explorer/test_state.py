"""The contract between Python and pages, on Python's side."""

import copy
import json
import re
from pathlib import Path

import pytest

from attractor.explorer import check_state, scene_named, scene_names, state_of
from attractor.explorer.state import SCHEMA
from attractor.support.errors import InvalidInputError

SOURCE = Path(__file__).parents[2] / "explorer/src/state.ts"
STATE = {
    "version": 1,
    "keys": [[[1, 0], [0, 1], [-1, 0]], [[0, 2], [1, 1]]],
    "scores": [[1, 0.5, 0], [1, 0]],
    "queries": [],
    "parameterization": "p",
    "start": [0.1, 0],
    "loss": "logistic",
    "trainings": [{"optimizer": "mirror_descent", "learning_rate": 0.1, "p": 3}],
    "steps": 100,
    "theme": "auto",
}
PLANE = {"kind": "principal", "origin": [0, 0], "axes": [[1, 0], [0, 1]], "hidden": 0, "words": "a"}
NGD = {"optimizer": "normalized_gradient_descent", "learning_rate": 0.1}


def interface(name):
    """The fields of an interface in the source of the page, as the schema writes them."""
    body = re.search(rf"interface {name} {{(.*?)\n}}", SOURCE.read_text("utf-8"), re.S)[1]
    return {"".join(found) for found in re.findall(r"^  (\w+)(\??):", body, re.M)}


@pytest.mark.skipif(not SOURCE.exists(), reason="the source of the page is not here")
@pytest.mark.parametrize("name", [name for name, rule in SCHEMA.items() if isinstance(rule, dict)])
def test_the_page_has_the_fields_of_the_schema(name):
    assert interface(name) == set(SCHEMA[name])


def test_a_state_survives_json_and_is_left_as_it_is():
    before = copy.deepcopy(STATE)
    checked = check_state(STATE)
    assert before == STATE == json.loads(json.dumps(checked))
    assert check_state(checked) == checked


def test_what_is_made_from_tokens_is_a_state(flat, deep):
    for tokens, head in (flat, deep):
        made = state_of(tokens, head, steps=10)
        assert check_state(json.loads(json.dumps(made))) == made


@pytest.mark.parametrize("name", scene_names())
def test_scenes_are_states(name):
    assert check_state(scene_named(name)) == scene_named(name)


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"version": 2}, "state.version"),
        ({"version": True}, "state.version"),
        ({"key": []}, "state.key"),
        ({"keys": "tokens"}, "state.keys"),
        ({"keys": []}, "state.keys"),
        ({"keys": [[[1, 0]] * 3, []]}, "state.keys[1]"),
        ({"keys": [[[1, 0]] * 3, [[0, 2], [1]]]}, "state.keys[1][1]"),
        ({"keys": [[[1, 0]] * 3, [[0, 2], [1, float("nan")]]]}, "state.keys[1][1][1]"),
        ({"keys": [[[1, 0]] * 3, [[0, 2], [1, "1"]]]}, "state.keys[1][1][1]"),
        ({"keys": [[[1, 0]]] * 25}, "state.keys"),
        ({"keys": [[[1, 0]] * 121] * 2}, "state.keys"),
        ({"keys": [[[1, 0, 0]] * 3, [[1, 0, 0]] * 2]}, "state.projection"),
        ({"scores": [[1, 0.5], [1, 0]]}, "state.scores"),
        ({"scores": {"0": 1}}, "state.scores"),
        ({"parameterization": "pv"}, "state.labels"),
        ({"parameterization": "pv", "labels": [1, 0]}, "state.labels[1]"),
        ({"parameterization": "v, p"}, "state.parameterization"),
        ({"parameterization": "W"}, "state.queries"),
        ({"parameterization": "W", "queries": [[1], [1]]}, "state.projection"),
        ({"start": [0.1]}, "state.start"),
        ({"start": [float("inf"), 0]}, "state.start[0]"),
        ({"start": [1e101, 0]}, "state.start[0]"),
        ({"loss": "squared"}, "state.loss"),
        ({"trainings": []}, "state.trainings"),
        ({"trainings": [NGD] * 3}, "state.trainings"),
        ({"trainings": [NGD | {"optimizer": "__import__('os')"}]}, "state.trainings[0].optimizer"),
        ({"trainings": [NGD | {"learning_rate": 0}]}, "state.trainings[0].learning_rate"),
        ({"trainings": [NGD, NGD | {"p": 1}]}, "state.trainings[1].p"),
        ({"trainings": [NGD | {"plain": 1}]}, "state.trainings[0].plain"),
        ({"trainings": [NGD | {"parameterization": "W"}]}, "state.trainings[0].parameterization"),
        ({"trainings": [{"learning_rate": 0.1}]}, "state.trainings[0].optimizer"),
        ({"norm": "my.module:Norm"}, "state.norm"),
        ({"norm": "l_0.5"}, "state.norm"),
        ({"norm": "schatten_3"}, "state.norm"),
        ({"keys": None}, "state.keys"),
        ({"version": None}, "state.version"),
        ({"id": None}, "state.id"),
        ({"__proto__": {}}, "state.__proto__"),
        ({"selection": [0, 2]}, "state.selection[1]"),
        ({"selection": [0]}, "state.selection"),
        ({"steps": 0}, "state.steps"),
        ({"steps": 10**9}, "state.steps"),
        ({"steps": 10.5}, "state.steps"),
        ({"keys": [[[1, 0]] * 20], "scores": [[0] * 20], "steps": 50_001}, "state.steps"),
        ({"title": "a" * 201}, "state.title"),
        ({"title": "a\0b"}, "state.title"),
        ({"title": "\ud800"}, "state.title"),
        ({"point": ["img", {"onerror": "x"}]}, "state.point"),
        ({"theme": "blue"}, "state.theme"),
        ({"solutions": [{"norm": "l_1", "selection": [0, 0]}]}, "state.solutions[0].status"),
        (
            {"solutions": [{"norm": "l_1", "selection": [0, 0], "status": "solved", "w": [1]}]},
            "state.solutions[0].w",
        ),
        ({"paths": [{"steps": [0, 0], "points": [0] * 4}]}, "state.paths[0].steps"),
        ({"paths": [{"steps": [0, 1], "points": [0] * 3}]}, "state.paths[0].points"),
        ({"paths": [{"steps": [0], "points": [0, 0]}] * 2}, "state.paths"),
        ({"projection": PLANE | {"axes": [[1, 0], [1, 0]]}}, "state.projection.axes"),
        ({"projection": PLANE | {"axes": [[1, 0]]}}, "state.projection.axes"),
        ({"projection": PLANE | {"origin": [0]}}, "state.projection.origin"),
        ({"projection": PLANE | {"hidden": 2}}, "state.projection.hidden"),
        ({"projection": PLANE}, "state.paths"),
    ],
)
def test_what_is_no_state_is_refused_by_its_name(change, argument):
    with pytest.raises(InvalidInputError) as caught:
        check_state(STATE | change)
    assert caught.value.argument == argument


@pytest.mark.parametrize("given", [None, [], "state", 3, [STATE]])
def test_what_is_no_mapping_is_refused(given):
    with pytest.raises(InvalidInputError, match=r"^state: "):
        check_state(given)


def test_what_is_missing_is_named():
    for field in (field for field in SCHEMA["State"] if not field.endswith("?")):
        with pytest.raises(InvalidInputError, match=rf"^state\.{field}: it is missing"):
            check_state({name: value for name, value in STATE.items() if name != field})
