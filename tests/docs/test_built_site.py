"""The built pages as a reader has them: ``make docs-check`` builds them, and runs this."""

import os
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser, served
from site_pages.links import dead_links, names_without_link

SITE = Path(os.environ.get("ATTRACTOR_SITE", ""))
pytestmark = pytest.mark.skipif(
    not os.environ.get("ATTRACTOR_SITE"), reason="ATTRACTOR_SITE names no built pages"
)
browsed = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")

FIRST = {
    "mirror descent": ("theory/norms.html#mirror-descent", "own_training.html#mirror-descent"),
    "nuclear": ("generated/api/attractor.geometry.html#attractor.Nuclear",),
    "infeasible": ("how_to.html#infeasible-problems",),
    "HeadMonitor": ("generated/api/attractor.monitor.html#attractor.HeadMonitor",),
    "own norm": ("tutorials/own_norm.html", "how_to.html#your-own-norm"),
}
"""What is looked for, with the pages of which one has to come first."""

_FOUND = """new Promise(done => {
  const links = () => [...document.querySelectorAll("ul.search > li > a")];
  const look = () => {
    const said = document.querySelector(".search-summary")?.textContent;
    if (/found|did not match/.test(said)) done(links().map(link => link.getAttribute("href")));
    else setTimeout(look, 100);
  };
  look();
})"""
_WIDE = """[...document.querySelectorAll("main *, footer *, header *")]
  .filter(one => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(
    "pre, .pst-scrollable-table-container, mjx-container, svg, .sidebar-primary, dialog"))
  .slice(0, 3)
  .map(one => one.tagName + "." + one.className + ": " + one.textContent.slice(0, 40))"""


@browsed
def test_a_bad_page_is_told_from_a_good_one(tmp_path):
    good = '<!doctype html><link rel="icon" href="data:,"><main><h1 id="here">A</h1></main>'
    bad = good + '<img src="none.png"><main><p style="width: 600px">wide</p></main>'
    bad += "<script>console.error('said');"
    bad += "const tried = fetch('http://example.com/x').catch(() => null); undefinedName()</script>"
    (tmp_path / "good.html").write_text(good, "utf-8")
    (tmp_path / "bad.html").write_text(bad, "utf-8")
    with served(tmp_path) as root, Browser(width=500) as browser:
        browser.visit(f"{root}/bad.html")
        browser.evaluate("tried")  # it may fail after the page has loaded
        said = str(browser.messages)
        assert "said" in said and "undefinedName" in said and len(browser.failed) == 2
        assert browser.evaluate("document.documentElement.scrollWidth > innerWidth")
        assert browser.evaluate(_WIDE)[0].endswith("wide")
        browser.visit(f"{root}/good.html")
        assert browser.messages == browser.failed == []
        assert not browser.evaluate("document.documentElement.scrollWidth > innerWidth")


def test_every_link_leads_somewhere():
    pages, links, dead = dead_links(SITE)
    print(f"\n{pages} pages, {links} links within them")
    assert pages > 50
    assert dead == []
    assert names_without_link(SITE) == []


@pytest.fixture(scope="module")
def root():
    with served(SITE) as address:
        yield address


@browsed
def test_every_page_loads_without_an_error_and_fits_a_phone(root):
    pages = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
    pages = [page for page in pages if not page.startswith("_static/")]
    said, wide = {}, {}
    with Browser(width=500) as browser:
        for page in pages:
            browser.visit(f"{root}/{page}")
            if browser.messages or browser.failed:
                said[page] = browser.messages + browser.failed
            if browser.evaluate("document.documentElement.scrollWidth > innerWidth"):
                wide[page] = browser.evaluate(_WIDE)
    print(f"\n{len(pages)} pages: {len(said)} with messages, {len(wide)} wider than 500 pixels")
    assert said == {}
    assert wide == {}


@browsed
def test_the_navigation_fits_a_laptop(root):
    with Browser(width=1280) as browser:
        browser.visit(f"{root}/index.html")
        bar = browser.evaluate(
            """(() => { const bar = document.querySelector(".bd-header .navbar-header-items");
            return [bar.scrollWidth, bar.clientWidth, bar.clientHeight,
              document.documentElement.scrollWidth] })()"""
        )
    assert bar[0] <= bar[1] and bar[2] < 80 and bar[3] <= 1280


@browsed
@pytest.mark.parametrize("words", FIRST)
def test_search_finds_the_right_page_first(words, root):
    with Browser(width=1280) as browser:
        browser.visit(f"{root}/search.html?q={words.replace(' ', '+')}")
        found = browser.evaluate(_FOUND)
    print(f"\n{words}: {found[:4]}")
    assert found[0] in FIRST[words]
