"""The page in Firefox: dragged by mouse, finger and keyboard, and asking for nothing."""

import time

import pytest
from bidi import FIREFOX, Firefox

import attractor as at
from attractor.explorer import Explorer, scene_named, scene_names
from attractor.explorer.explorer import page_of

HOST = "document.querySelector('.attractor-explorer')"


@pytest.fixture(scope="module")
def firefox():
    if FIREFOX is None:
        pytest.skip("there is no Firefox: apt-get install firefox-esr")
    with Firefox() as running:
        yield running


def until(firefox, expression):
    end = time.monotonic() + 20
    while not firefox.evaluate(expression):
        assert time.monotonic() < end, expression
        time.sleep(0.05)


@pytest.fixture
def show(firefox, tmp_path):
    def open_scene(name, **change):
        file = tmp_path / "page.html"
        file.write_text(page_of(scene_named(name) | change), "utf-8")
        firefox.messages.clear()
        firefox.asked.clear()
        firefox.visit(file.as_uri())
        until(firefox, f"{HOST}?.explorer !== undefined")
        return firefox

    yield open_scene
    assert firefox.messages == []
    assert [one for one in firefox.asked if not one.startswith(("file:", "data:", "blob:"))] == []


def middle(firefox, selector):
    return firefox.evaluate(
        f'(() => {{ const box = {HOST}.shadowRoot.querySelector("{selector}")'
        ".getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )


def assert_agrees(firefox):
    explorer = Explorer(firefox.evaluate(f"{HOST}.explorer.state"))
    first = firefox.evaluate(f"{HOST}.explorer.readings().trainings[0]")
    kept = at.Selection.from_index(explorer.tokens, first["attractor"]["selection"])
    problem = at.MarginProblem.from_selection(explorer.tokens, kept)
    value = at.solve(problem, first["normName"], tolerance=1e-13).value
    shown = firefox.evaluate(
        f"[...{HOST}.shadowRoot.querySelectorAll('.certificate tr')].find(row =>"
        " row.textContent.includes('at most')).querySelector('td').textContent"
    )
    assert float(shown) == float(f"{value:.9g}")


@pytest.mark.parametrize("kind", ["mouse", "touch"])
def test_a_token_is_dragged(show, kind):
    firefox = show("two-basins", start=[-0.5, -0.1])
    before = firefox.evaluate(f"{HOST}.explorer.state")
    x, y = middle(firefox, "[data-token='0,0'] path")
    firefox.drag((x, y), (x - 40, y + 24), kind)
    until(firefox, f"{HOST}.explorer.state.id !== undefined")
    after = firefox.evaluate(f"{HOST}.explorer.state")
    assert after["keys"][0][0] != before["keys"][0][0]
    x2, y2 = middle(firefox, "[data-token='0,0'] path")
    assert abs(x2 - (x - 40)) < 3 and abs(y2 - (y + 24)) < 3
    assert_agrees(firefox)


def test_the_keyboard_moves_a_token_and_undoes_it(show):
    firefox = show("two-basins")
    before = firefox.evaluate(f"{HOST}.explorer.state.keys")
    firefox.evaluate(f"{HOST}.shadowRoot.querySelector(\"[data-token='1,1']\").focus()")
    firefox.press("\ue014")  # to the right
    until(firefox, f"{HOST}.explorer.state.id !== undefined")
    assert firefox.evaluate(f"{HOST}.explorer.state.keys") != before
    assert_agrees(firefox)
    firefox.evaluate(f"{HOST}.shadowRoot.querySelector(\"[aria-label='undo']\").click()")
    assert firefox.evaluate(f"{HOST}.explorer.state.keys") == before


def test_basins_are_painted_by_a_worker(show):
    firefox = show("two-basins")
    until(firefox, f"{HOST}.dataset.painted !== undefined")


@pytest.mark.parametrize("name", scene_names())
def test_every_scene_opens(show, name):
    firefox = show(name)
    assert firefox.evaluate(f"{HOST}.explorer.readings().trainings.length") >= 1
