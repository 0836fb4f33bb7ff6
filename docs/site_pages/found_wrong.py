"""What does not hold of what the papers print, from one list, with how to see it oneself."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from attractor.papers import all_claims
from attractor.papers.ledger.index import papers
from site_pages.papers import link_to

LIST = "found_wrong.toml"
FILES = "data/counterexamples"
"""Where the list and its files lie, in the folder of the documentation."""

_PREAMBLE = """\
# What we found wrong

{claims} claims say what the papers say, and what is believed of optimizers, each so that a command
can check it ([all of them](papers/index.md)). Nearly all hold. Here are the statements that do not,
as printed or as one readily reads them, figures that show something else than they are drawn for,
and, last, beliefs. None takes away from what the papers are about: the main theorem of each holds
wherever it was tried.

Where the words of a statement were not at hand it is said how it was read. We may be wrong as well:
each item has a command that shows it, and mostly a file, so that nothing has to be believed. Files
are token files, corpora, heads or tasks; commands take them from the folder they are run in.
Seconds are of one quiet core, start-up included.

"""


@dataclass(frozen=True)
class Found:
    """Something printed that does not hold.

    Attributes:
        paper: The name of the paper.
        title: What it is, in a few words.
        about: The claims and figures that measure it.
        printed: What a reader finds in the paper; of folklore, what is believed.
        true: What is so.
        shown: Where one sees it: a counterexample in words.
        command: The command that shows it.
        output: A line that the command prints; empty where it draws a figure.
        seconds: How long the command takes.
        file: The counterexample, where a file can hold it.
    """

    paper: str
    title: str
    about: tuple[str, ...]
    printed: str
    true: str
    shown: str
    command: str
    output: str
    seconds: int
    file: str = ""


def all_found(docs: Path) -> list[Found]:
    """Everything in the list on papers that are installed, in its order.

    Args:
        docs: The folder of the documentation.
    """
    entries = tomllib.loads((docs / LIST).read_text("utf-8"))["found"]
    return [
        Found(**{**entry, "about": tuple(entry["about"])})
        for entry in entries
        if entry["paper"] in papers()
    ]


def links_to_found(docs: Path) -> dict[str, str]:
    """Links from pages of the papers, by the claims and figures that measure what was found.

    Args:
        docs: The folder of the documentation.
    """
    links: dict[str, str] = {}
    for one in all_found(docs):
        link = f"[What we found wrong: {one.title}](../found_wrong.md#{_anchor(one.title)})"
        for name in one.about:
            links[name] = f"{links[name]}; {link}" if name in links else link
    return links


def found_wrong_page(docs: Path) -> str:
    """The page: a table of everything, then a section for each paper."""
    everything = all_found(docs)
    text = _PREAMBLE.format(claims=len(all_claims()))
    text += "| paper | what |\n| --- | --- |\n"
    paper = None
    for one in everything:
        name = "" if one.paper == paper else papers()[one.paper].title.split(":")[0]
        text += f"| {name} | [{one.title}](#{_anchor(one.title)}) |\n"
        paper = one.paper
    paper = None
    for one in everything:
        if one.paper != paper:
            paper = one.paper
            text += f"\n## {papers()[paper].title}\n"
        text += f"\n{_section(one)}"
    return text


def _section(one: Found) -> str:
    text = f"### {one.title}\n\n"
    said = "Printed" if papers()[one.paper].authors else "Believed"
    for label, words in ((said, one.printed), ("True", one.true), ("Seen", one.shown)):
        text += f"**{label}.** {words.strip()}\n\n"
    if one.file:
        text += f"The file: [{one.file}](../{FILES}/{one.file}).\n\n"
    text += f"```\n{one.command}\n```\n\n"
    took = f"{one.seconds} s" if one.seconds < 100 else f"{round(one.seconds / 60)} minutes"
    printed = f", and says *{_plain(one.output)}*" if one.output else ""
    text += f"It takes {took}{printed}. More: {', '.join(link_to(name) for name in one.about)}.\n"
    return text


def _anchor(title: str) -> str:
    """The address of a section, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _plain(words: str) -> str:
    return re.sub(r"([*_<>|])", r"\\\1", words)
