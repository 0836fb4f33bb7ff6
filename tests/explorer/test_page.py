"""A page is one file that asks for nothing."""

import base64
import gzip
import hashlib
import html.parser
import json
import re

import pytest
from site_pages.offline import outside_references

import attractor as at
from attractor.explorer import Explorer, state_of
from attractor.explorer.explorer import script
from attractor.support.errors import InvalidInputError

TITLE = "</script><script>alert(1)</script> & “tokens”"


class Parsed(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.scripts, self.tags, self._inside = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_data(self, data):
        if self._inside == "script":
            attrs, text = self.scripts[-1]
            self.scripts[-1] = attrs, text + data

    def handle_endtag(self, tag):
        self._inside = None


@pytest.fixture
def page(flat):
    return at.explorer_page(*flat, title=TITLE, theme="dark")


def test_it_holds_its_state_and_its_script(page, flat):
    parsed = Parsed(page)
    (kind, state), (own, code) = parsed.scripts
    assert kind == {"type": "application/json"} and own == {}
    assert json.loads(state) == state_of(*flat, title=TITLE, theme="dark")
    assert "customElements" in code or "attachShadow" in code
    assert page.lower().count("</script") == 2


def test_it_reads_nothing_and_may_not(page):
    assert outside_references(page) == []
    addresses = re.findall(r"https?://[^\s\"'`)<]+", page)
    assert {one for one in addresses if not one.startswith("http://www.w3.org/")} == set()
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|importScripts|sendBeacon)\b", page)
    policy = next(
        attrs["content"]
        for tag, attrs in Parsed(page).tags
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'" and "connect-src" not in rules
    digest = hashlib.sha256(Parsed(page).scripts[-1][1].encode()).digest()
    assert rules["script-src"] == f"'sha256-{base64.b64encode(digest).decode()}'"
    assert all("http" not in sources and "*" not in sources for sources in rules.values())


def test_its_script_is_small():
    content = script().encode()
    assert len(content) < 85_500 and len(gzip.compress(content, 9)) < 35_200


def test_titles_are_text(page):
    assert "alert(1)" not in "".join(text for _, text in Parsed(page).scripts[1:])
    assert "<title>&lt;/script&gt;&lt;script&gt;alert(1)" in page
    assert '<meta name="color-scheme" content="dark">' in page


def test_it_is_saved_whole_or_not_at_all(flat, tmp_path):
    explorer = Explorer(state_of(*flat))
    explorer.save(tmp_path / "page.html", title="Mine")
    assert '"title": "Mine"' in (tmp_path / "page.html").read_text("utf-8")
    for path, title in ((tmp_path / "page.txt", None), (3, None), (tmp_path / "a.html", "")):
        with pytest.raises(InvalidInputError, match=r"^(path|title): "):
            explorer.save(path, title)
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
