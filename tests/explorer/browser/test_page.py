"""What a reader does with a page besides dragging."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import attractor as at
from attractor.cli.application import app
from attractor.explorer import scene_names, state_of
from attractor.files import load_tokens

SOURCE = Path(at.__file__).parents[1]


def moved(shown):
    """Moves the first token by the keyboard."""
    shown.token(0, 0).focus()
    shown.page.keyboard.press("Shift+ArrowLeft")
    shown.settled()
    return shown.state


def plain(state):
    """A state without what names it, and how it looks."""
    return {name: value for name, value in state.items() if name not in ("id", "theme")}


def test_a_change_is_undone_and_done_again(show):
    shown = show("two-basins")
    first = shown.state
    second = moved(shown)
    undo = shown.page.get_by_role("button", name="undo")
    undo.click()
    assert plain(shown.state) == plain(first) and undo.is_disabled()
    shown.page.keyboard.press("Control+Shift+Z")
    assert plain(shown.state) == plain(second)
    shown.page.keyboard.press("Control+z")
    assert plain(shown.state) == plain(first)


def test_a_link_restores_the_state(show):
    shown = show("two-basins")
    state = moved(shown)
    address = shown.page.evaluate("location.hash")
    assert address.startswith("#explorer:") and len(address) < 200
    again = show("two-basins", address=address)
    assert plain(again.state) == plain(state)
    for wrong in (
        "#explorer:nowhere",
        "#explorer:two-basins&keys=[",
        "#other",
        "#explorer:&steps=-1",
    ):
        unmoved = show("two-basins", address=wrong)
        assert len(unmoved.state["keys"]) == 2


@pytest.mark.parametrize("name", scene_names())
def test_token_files_are_solved_by_the_command(show, tmp_path, name, monkeypatch):
    from typer.testing import CliRunner

    shown = show(name)
    path = tmp_path / "tokens.npz"
    path.write_bytes(Path(shown.save("Token file")).read_bytes())
    loaded = load_tokens(path)
    assert loaded.tokens.sequences == len(shown.state["keys"])
    assert loaded.steps == shown.state["steps"]
    if loaded.parameterization == "v, p":  # whose tokens are known once it is trained
        words = ["check", str(path), "--json"]
    else:
        kept = ",".join(map(str, shown.explorer("e.readings().predicted[0].selection")))
        norm = shown.library.solution().geometry.name
        words = ["solve", str(path), "--norm", norm, "--selection", kept, "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code in (0, 3), result.output
    if result.exit_code == 0 and words[0] == "solve":
        import json

        found = json.loads(result.stdout)
        reading = shown.explorer("e.readings().predicted[0]")
        assert found["value"] == pytest.approx(reading["value"], rel=1e-6)


@pytest.mark.parametrize("name", ["two-basins", "factors", "joint"])
def test_python_lines_print_the_norms_of_the_certificate(show, name):
    shown = show(name)
    shown.page.get_by_role("button", name="Save").click()
    shown.page.get_by_role("button", name="Python").click()
    code = shown.page.locator("section.panel pre").inner_text()
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    norms = [line.split()[-1] for line in done.stdout.splitlines() if line.split()[:1] == ["norm"]]
    readings = [one["attractor"] for one in shown.explorer("e.readings().trainings")]
    for reading, norm in zip(readings, norms, strict=True):
        assert float(norm) == pytest.approx(reading["value"], rel=1e-8)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pictures_are_whole(show, scheme):
    shown = show("two-basins", color_scheme=scheme)
    picture = Path(shown.save("PNG")).read_bytes()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(picture[16:20]) == 2000 and len(picture) > 50_000
    drawing = ElementTree.fromstring(Path(shown.save("SVG")).read_text("utf-8"))
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    texts = "".join(drawing.itertext())
    assert "Two basins" in texts and shown.number("at most") in texts
    links = [v for one in drawing.iter() for k, v in one.attrib.items() if k.endswith("href")]
    assert all(link.startswith("data:image/png") for link in links)


def test_what_is_being_typed_stays(show):
    shown = show("two-basins")
    step = shown.page.get_by_role("spinbutton", name="step")
    step.fill("0.3")
    play = "document.querySelector('.attractor-explorer').shadowRoot.querySelector('.time button')"
    shown.page.evaluate(f"{play}.click()")  # which draws the page again, and takes no focus
    shown.page.get_by_role("button", name="pause").wait_for()
    assert step.input_value() == "0.3" and shown.state["trainings"][0]["learning_rate"] == 0.1
    step.press("Enter")
    shown.settled()
    assert shown.state["trainings"][0]["learning_rate"] == 0.3


DARK = "document.querySelector('.attractor-explorer').shadowRoot.querySelector('.dark') !== null"


def test_it_follows_the_page_while_that_becomes_dark(show):
    shown = show("two-basins", color_scheme="light")
    assert not shown.page.evaluate(DARK)
    shown.page.emulate_media(color_scheme="dark")
    shown.until(DARK)
    shown.page.evaluate("document.documentElement.dataset.theme = 'light'")
    shown.until(f"!({DARK})")
    shown.page.evaluate("document.documentElement.dataset.theme = 'dark'")
    shown.until(DARK)


def test_training_is_played_in_few_pictures_where_motion_is_not_wanted(show):
    for motion, few in (("reduce", True), ("no-preference", False)):
        shown = show("two-basins", reduced_motion=motion)
        shown.page.evaluate(
            """() => { window.seen = new Set();
            const text = document.querySelector('.attractor-explorer').shadowRoot
              .querySelector('output');
            new MutationObserver(() => window.seen.add(text.textContent)).observe(
              text, {childList: true, characterData: true, subtree: true}); }"""
        )
        play = shown.page.get_by_role("button", name="play")
        play.click()
        shown.page.get_by_role("button", name="pause").wait_for()
        play.wait_for(timeout=20_000)
        seen = shown.page.evaluate("window.seen.size")
        assert (seen <= 10) == few and seen > 3
        assert shown.page.locator("output").first.inner_text() == "step 2,000"


@pytest.mark.parametrize("width", [1100, 500, 360])
@pytest.mark.parametrize("name", scene_names())
def test_it_fits_narrow_screens(show, name, width):
    shown = show(name, width=width)
    wide = shown.page.evaluate(
        """() => { const host = document.querySelector('.attractor-explorer');
        return [...host.shadowRoot.querySelectorAll('*')].filter(one =>
          one.getBoundingClientRect().right > innerWidth + 1 && !one.closest('svg'))
          .map(one => one.tagName + ' ' + one.className); }"""
    )
    assert wide == []
    assert not shown.page.evaluate("document.documentElement.scrollWidth > innerWidth")


def test_what_has_a_name_says_it(show):
    shown = show("two-basins")
    unnamed = shown.page.evaluate(
        """() => [...document.querySelector('.attractor-explorer').shadowRoot
          .querySelectorAll('button, select, input, [tabindex], [role=img], [role=button]')]
          .filter(one => !(one.getAttribute('aria-label') || one.textContent.trim()
            || one.closest('label')?.textContent.trim() || one.title))
          .map(one => one.outerHTML.slice(0, 80))"""
    )
    assert unnamed == []


def test_tokens_of_more_numbers_are_seen_and_not_dragged(show):
    tokens, head = at.datasets.unit_tokens(3, 4, 6, seeds=[2])
    state = state_of(tokens, head, parameterization="p", steps=500)
    shown = show(state)
    hidden = round(100 * state["projection"]["hidden"])
    text = shown.page.locator(".explorer").inner_text()
    assert f"{hidden} % of the squared distances" in text
    x, y = shown.middle(shown.token(0, 0).locator("path"))
    shown.page.mouse.move(x, y)
    shown.page.mouse.down()
    shown.page.mouse.move(x + 50, y, steps=3)
    shown.page.mouse.up()
    assert plain(shown.state) == plain(state)
    run = shown.library.train()
    end = shown.explorer("e.readings().trainings[0]")
    assert end["point"] == pytest.approx(run.W()[0, 0].ravel().tolist())
    assert end["loss"] == pytest.approx(float(run.data.loss[0, 0, -1]), rel=1e-9)
    assert end["kept"] == run.data.attended[0, 0, -1, :, 0].values.tolist()
    predicted = shown.explorer("e.readings().predicted[0]")
    assert predicted["value"] == pytest.approx(shown.library.solution().value)


def test_the_page_may_ask_for_nothing(chromium, show, tmp_path):
    shown = show("two-basins")
    asked = """async () => { const out = [];
      for (const ask of [() => fetch('https://example.org/x'), () => new Promise((go, stop) => {
        const image = new Image(); image.onload = go; image.onerror = stop;
        image.src = 'https://example.org/x.png'; })]) {
        try { await ask(); out.push('went'); } catch { out.push('refused'); } }
      return out; }"""
    assert shown.page.evaluate(asked) == ["refused", "refused"]
    said = " ".join(shown.messages)
    assert said.count("Content Security Policy") >= 2 and shown.refused == []
    shown.messages.clear()
