"""Pages made from the library leave nothing of it out. No page is built here."""

import importlib
import inspect
import re
from pathlib import Path

import pytest
import typer
from site_pages import all_pages
from site_pages.api import OF_TORCH, api_pages, names_of, public_names
from site_pages.audit_words import audit_words_page
from site_pages.commands import command_pages
from site_pages.docstrings import (
    data_docstring,
    imported_from,
    literal_blocks,
    without_packages,
)
from site_pages.gallery import gallery_page, pictures
from site_pages.links import dead_links, names_without_link
from site_pages.offline import outside_references
from site_pages.papers import paper_pages
from site_pages.project import PAGES, with_pages
from site_pages.statuses import meanings, statuses, statuses_page

import attractor
from attractor.cli.application import command_names, load_command
from attractor.heads.audit.summary import glossary
from attractor.papers import all_claims, all_figures

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)]*)?\)")


def value_of(name):
    package, _, short = name.rpartition(".")
    return getattr(importlib.import_module(package), short)


@pytest.fixture(scope="module")
def shown():
    """Every name that a page of the reference describes."""
    pages = api_pages().values()
    found = [name for page in pages for name in re.findall(r"^\.\. auto\w+:: (\S+)$", page, re.M)]
    assert len(found) == len(set(found))
    return set(found)


def test_every_public_name_is_in_the_reference(shown):
    objects = {id(value_of(name)) for name in shown if not name.startswith(OF_TORCH)}
    missing = []
    for package in ["attractor", *(f"attractor.{name}" for name in attractor._SUBMODULES)]:
        if package == "attractor.torch":
            missing += [name for name in names_of(package) if f"{package}.{name}" not in shown]
            continue
        for name in getattr(importlib.import_module(package), "__all__", ()):
            value = value_of(f"{package}.{name}")
            known = f"{package}.{name}" in shown or id(value) in objects
            if not (known or inspect.ismodule(value)):
                missing.append(f"{package}.{name}")
    assert missing == []
    assert {name for name in shown if name.count(".") == 1} == {
        f"attractor.{name}" for name in attractor.__all__
    }


def test_a_name_that_is_added_is_in_the_reference(monkeypatch):
    monkeypatch.setattr(attractor.tokens, "__all__", [*attractor.tokens.__all__, "added"])
    monkeypatch.setattr(attractor.tokens, "added", lambda: None, raising=False)
    public_names.cache_clear()
    try:
        assert ".. autofunction:: attractor.tokens.added" in api_pages()["api/attractor.tokens.rst"]
    finally:
        public_names.cache_clear()


def test_every_name_says_what_it_is():
    silent = []
    for name, (page, kind) in public_names().items():
        if page in OF_TORCH:
            continue
        text = data_docstring(name) if kind == "data" else inspect.getdoc(value_of(name))
        if not text:
            silent.append(name)
    assert silent == []


def test_every_command_has_a_page_with_all_its_options():
    pages = command_pages()
    assert set(pages) == {"commands/index.md", *(f"commands/{name}.md" for name in command_names())}
    for name in command_names():
        command = typer.main.get_command(load_command(name))
        for one in [command, *getattr(command, "commands", {}).values()]:
            for parameter in one.params:
                expected = parameter.opts if parameter.param_type_name == "option" else ()
                assert all(option in pages[f"commands/{name}.md"] for option in expected), name


def test_every_claim_and_figure_has_its_section_and_its_command():
    pages = paper_pages()
    text = "\n".join(pages.values())
    sections = re.findall(r"^### (\S+)$", text, re.M)
    assert sorted(sections) == sorted([*all_claims(), *all_figures()])
    for name, command in [*((name, "claims") for name in all_claims()), *(
        (name, "figures") for name in all_figures()
    )]:  # fmt: skip
        assert f"attractor {command} {name}" in text
    counts = re.findall(r"\| (\d+) \| (\d+) \|$", pages["papers/index.md"], re.M)
    assert sum(int(claims) for claims, _ in counts) == len(all_claims())
    assert sum(int(figures) for _, figures in counts) == len(all_figures())


def test_the_words_of_an_audit_are_those_of_its_report():
    page = audit_words_page()
    for title, entries in glossary().items():
        rows = page.split(f"## {title}\n")[1].split("##")[0]
        assert all(f"| {word} | {meaning} |" in rows for word, meaning in entries)


@pytest.mark.parametrize("name", statuses())
def test_every_status_has_a_meaning(name):
    kind = statuses()[name]
    said = meanings(kind)
    words = {member.name: str(member.value) for member in kind}
    unclear = [one for one, meaning in said.items() if not meaning and len(words[one].split()) < 4]
    assert unclear == []
    assert all(f"| `{one}` |" in statuses_page() for one in said)


def test_the_gallery_has_every_picture_that_a_page_shows():
    text = gallery_page(DOCS)
    assert len(pictures(DOCS)) > 20
    assert all(f"](../{picture})" in text for picture in pictures(DOCS))


@pytest.mark.parametrize(
    "path",
    [*sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("theory/*.md"))],
    ids=lambda path: path.name,
)
def test_links_of_guides_lead_somewhere(path):
    for link in LINK.findall(re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.S)):
        assert "://" in link or (path.parent / link).exists(), link
        assert "generated/" not in link, link  # which is not in a checkout


def test_links_to_what_pages_are_made_from_lead_to_the_pages():
    text = (
        "[a](../found_wrong.toml#b), [c](../../src/attractor/cli/commands/check.py), [d](norms.md)"
    )
    moved = "[a](../generated/found_wrong.md#b), [c](../generated/commands/check.md), [d](norms.md)"
    assert with_pages(text, "theory/training") == moved
    assert with_pages("[e](../CHANGELOG.md)", "index") == "[e](generated/changelog.md)"
    assert {*PAGES.values()} <= {*all_pages(DOCS)}


def test_indented_equations_are_literal_and_sections_are_not():
    lines = ["The norm.", "", "    |x| = 1", "", "Args:", "    x: A vector.", "", "    More of it."]
    assert literal_blocks(lines) == ["The norm.", "", "::", "", *lines[2:]]


@pytest.mark.parametrize(
    ("text", "outside"),
    [
        ('<script src="https://cdn.example/x.js"></script>', ["https://cdn.example/x.js"]),
        ('<link rel="stylesheet" href="//fonts.example/a.css"/>', ["//fonts.example/a.css"]),
        ('<img src="../images/a.png"/><a href="https://arxiv.org/abs/1">paper</a>', []),
        ("@import 'https://fonts.example/a.css';", ["https://fonts.example/a.css"]),
        ("p { background: url(data:image/png;base64,AA//) }", []),
    ],
)
def test_what_a_page_reads_from_outside_is_found(text, outside):
    assert outside_references(text) == outside


def test_links_that_lead_nowhere_are_found(tmp_path):
    links = '<a href="b.html#here">1</a><a href="b.html#gone">2</a><a href="c.html">3</a>'
    links += '<a href="#top">4</a><a href="https://arxiv.org">5</a><img src="d.png">'
    (tmp_path / "a.html").write_text(links, "utf-8")
    (tmp_path / "b.html").write_text('<h1 id="here">B</h1>', "utf-8")
    dead = ["a.html: b.html#gone", "a.html: c.html", "a.html: d.png"]
    assert dead_links(tmp_path) == (2, 5, dead)
    name = '<code class="xref py py-func"><span>{}</span></code>'
    (tmp_path / "c.html").write_text(f"<a>{name.format('a')}</a>, {name.format('b')}", "utf-8")
    assert names_without_link(tmp_path) == ["c.html: b"]


def test_what_a_type_means_is_read_off_the_imports():
    assert (
        imported_from("attractor.prompts.files.head", "Measure")
        == "attractor.prompts.measures.contract"
    )
    assert imported_from("attractor.maps.sweeps.experiment", "Measure") is None


def test_data_say_what_stands_below_where_they_are_assigned():
    assert (
        data_docstring("attractor.analysis.rates.LAWS") == "The laws that can be fitted, by name."
    )
    assert data_docstring("attractor.files.LAYOUT").startswith("The entries of a token file")


def test_types_are_without_their_packages():
    text = "jaxtyping.Float[numpy.ndarray, '*instances n'] | ~attractor.tokens.Tokens"
    assert without_packages(text) == "Float[ndarray, '*instances n'] | ~attractor.tokens.Tokens"
