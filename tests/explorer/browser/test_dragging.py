"""What is dragged, by whatever means, and what the page then says, against the library."""

import numpy as np
import pytest

import attractor as at
from attractor.explorer import scene_named

AT_MOST = "at most"


def exact(shown):
    """The norm on the page, as the library has it."""
    first = shown.explorer("e.readings().trainings[0]")
    kept = at.Selection.from_index(shown.library.tokens, first["attractor"]["selection"])
    problem = at.MarginProblem.from_selection(shown.library.tokens, kept)
    return at.solve(problem, first["normName"], tolerance=1e-13).value


def assert_agrees(shown):
    said, wanted = shown.number(AT_MOST), exact(shown)
    digits = len(said.replace(".", "").lstrip("0"))
    assert digits >= 8 and float(said) == float(f"{wanted:.{digits}g}")
    assert float(shown.number("at least")) <= wanted * (1 + 1e-9)


def test_a_token_follows_the_mouse(show):
    shown = show(scene_named("two-basins") | {"start": [-0.5, -0.1]})
    before, said = shown.state, shown.number(AT_MOST)
    x, y = shown.middle(shown.token(0, 0).locator("path"))
    mouse = shown.page.mouse
    mouse.move(x, y)
    mouse.down()
    mouse.move(x - 40, y + 25, steps=8)
    shown.until("document.querySelector('.attractor-explorer').explorer.updates > 0")
    while_held = shown.number(AT_MOST)
    assert while_held != said
    assert_agrees(shown)
    mouse.up()
    shown.settled()
    after = shown.state
    assert after["keys"][0][0] != before["keys"][0][0] and after["keys"][1] == before["keys"][1]
    assert shown.number(AT_MOST) == while_held and after["id"] != before.get("id")
    assert_agrees(shown)
    x2, y2 = shown.middle(shown.token(0, 0).locator("path"))
    assert abs(x2 - (x - 40)) < 2 and abs(y2 - (y + 25)) < 2


def swipe(shown, start, end):
    """A finger that goes from one place of the screen to another, as the browser's own events."""
    session = shown.page.context.new_cdp_session(shown.page)
    for part in range(11):
        x, y = (a + (b - a) * part / 10 for a, b in zip(start, end, strict=True))
        kind = "touchMove" if part else "touchStart"
        points = [{"x": x, "y": y, "id": 1}]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        shown.page.wait_for_timeout(20)
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_a_token_follows_a_finger(show):
    shown = show("two-basins", has_touch=True, is_mobile=True, width=412, height=915)
    before = shown.state
    mark = shown.token(1, 0).locator("path")
    mark.scroll_into_view_if_needed()
    x, y = shown.middle(mark)
    scrolled = shown.page.evaluate("scrollY")
    swipe(shown, (x, y), (x - 32, y + 24))
    shown.settled()
    assert shown.state["keys"][1][0] != before["keys"][1][0]
    assert shown.page.evaluate("scrollY") == scrolled  # the page did not move with it
    x2, y2 = shown.middle(mark)
    assert abs(x2 - (x - 32)) < 3 and abs(y2 - (y + 24)) < 3
    assert_agrees(shown)


def test_a_page_scrolls_where_a_finger_meets_no_token(show):
    shown = show("two-basins", has_touch=True, is_mobile=True, width=412, height=600)
    swipe(shown, (200, 500), (200, 300))
    shown.until("scrollY > 100")


def test_a_token_follows_the_keyboard_and_so_does_its_score(show):
    shown = show("two-basins")
    before = shown.state
    shown.token(0, 1).focus()
    shown.page.keyboard.press("ArrowRight")
    shown.settled()
    [x, y] = shown.state["keys"][0][1]
    assert x > before["keys"][0][1][0] and y == before["keys"][0][1][1]
    shown.page.keyboard.press("Shift+ArrowUp")
    shown.settled()
    assert shown.state["keys"][0][1][1] - y > 4 * (x - before["keys"][0][1][0])
    shown.page.keyboard.press("+")
    shown.settled()
    assert shown.state["scores"][0][1] == pytest.approx(before["scores"][0][1] + 0.1)
    assert "score 0.9" in shown.token(0, 1).get_attribute("aria-label")
    assert_agrees(shown)
    for _ in range(30):  # every control can be reached without a mouse
        shown.page.keyboard.press("Tab")
    assert shown.page.evaluate("document.activeElement !== document.body")


def test_a_start_is_dragged_and_the_path_is_the_library_s(show):
    shown = show(scene_named("two-basins") | {"steps": 50})
    x, y = shown.middle(shown.page.locator("[data-start]"))
    shown.page.mouse.move(x, y)
    shown.page.mouse.down()
    shown.page.mouse.move(x + 60, y - 50, steps=5)
    shown.page.mouse.up()
    shown.settled()
    assert shown.state["start"] != scene_named("two-basins")["start"]
    end = shown.explorer("e.readings().trainings[0].point")
    np.testing.assert_allclose(end, shown.library.train().W()[0, 0].ravel(), rtol=1e-9)


def test_a_query_is_dragged(show):
    shown = show("factors")
    before = shown.state
    x, y = shown.middle(shown.page.locator("[data-query='0']"))
    shown.page.mouse.move(x, y)
    shown.page.mouse.down()
    shown.page.mouse.move(x + 30, y - 20, steps=5)
    shown.page.mouse.up()
    shown.settled()
    assert shown.state["queries"][0] != before["queries"][0]
    assert_agrees(shown)


@pytest.mark.parametrize("norm", ["l_1", "l_1.5", "l_3", "l_inf", "frobenius"])
def test_every_norm_agrees_to_the_digits_shown(show, norm):
    shown = show("two-basins")
    select = shown.page.get_by_role("combobox", name="norm")
    if norm not in select.locator("option").evaluate_all("all => all.map(one => one.value)"):
        pytest.skip("the page leaves this norm to the kernel")
    select.select_option(norm)
    shown.settled()
    assert shown.state["norm"] == norm
    assert_agrees(shown)
