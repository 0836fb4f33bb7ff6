"""Pages in a real Chromium, to which nothing outside of this machine can be reached."""

import contextlib
import json
import shutil

import pytest
from shown import Shown

from attractor.explorer import scene_named
from attractor.explorer.explorer import page_of

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


def pytest_collection_modifyitems(items):
    for item in items:
        if "/explorer/browser/" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def chromium():
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="there is no playwright: pip install playwright"
    )
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def show(chromium, tmp_path):
    """Opens a scene or a state on a page of its own, which may ask for nothing and not complain."""
    shown = []
    with contextlib.ExitStack() as opened:

        def open_page(what="two-basins", *, address="", width=1100, height=1000, **options):
            size = {"width": width, "height": height}
            context = chromium.new_context(viewport=size, accept_downloads=True, **options)
            opened.callback(context.close)
            context.set_default_timeout(15_000)
            one = Shown(context.new_page())
            shown.append(one)
            state = scene_named(what) if isinstance(what, str) else what
            file = tmp_path / f"page{len(shown)}.html"
            file.write_text(page_of(json.loads(json.dumps(state))), "utf-8")
            one.visit(file.as_uri() + address)
            return one

        yield open_page
        for one in shown:
            assert one.messages == [] and one.refused == []
