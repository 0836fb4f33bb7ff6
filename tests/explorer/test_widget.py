"""The widget of notebooks, without a browser: what it takes and what it answers."""

import asyncio
import builtins

import pytest

import attractor as at
from attractor.explorer import explorer
from attractor.support.errors import InvalidInputError


def test_without_anywidget_it_is_said_what_to_install(flat, monkeypatch):
    real = builtins.__import__

    def missing(name, *arguments):
        if name == "anywidget":
            raise ModuleNotFoundError("No module named 'anywidget'")
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", missing)
    explorer.widget_class.cache_clear()
    with pytest.raises(InvalidInputError, match=r"pip install 'attractor\[explorer\]'"):
        at.explore(*flat)


@pytest.fixture
def shown(flat):
    pytest.importorskip("anywidget")
    return at.explore(*flat, steps=5)


def test_it_answers_what_a_browser_says(shown):
    assert shown.kernel["value"] == pytest.approx(shown.solution().value)
    moved = shown.state | {"id": "2", "start": [3, 1]}
    shown.set_state({"state": moved})
    assert shown.kernel["state"] == "2" and shown.train().data.p[0, 0, 0].values.tolist() == [3, 1]
    assert shown.kernel["ends"][0] == pytest.approx(shown.train().W()[0, 0].ravel().tolist())
    assert shown.state["start"] == [3, 1] and shown.tokens.sequences == 2


def test_what_is_no_state_is_a_message_and_changes_nothing(shown):
    before = shown.state
    for wrong in ({"version": 1}, "text", None, before | {"id": "9", "steps": 10**12}):
        shown.set_state({"state": wrong, "kernel": {"value": 1}})
        assert shown.state == before and shown.kernel["message"].startswith("state")
    assert shown.kernel["state"] == "9" and "value" not in shown.kernel
    with pytest.raises(InvalidInputError, match=r"^state\.steps: "):
        shown.state = before | {"steps": 0}
    assert shown.state == before


def test_states_that_others_replaced_are_not_answered(shown, monkeypatch):
    asked = []
    monkeypatch.setattr(explorer, "report_on", lambda state: asked.append(state["id"]) or {})

    async def drag():
        for number in range(5):
            shown.set_state({"state": shown.state | {"id": str(number), "start": [number, 0]}})
        await asyncio.sleep(3 * explorer._PAUSE)

    asyncio.run(drag())
    assert asked == ["4"]
