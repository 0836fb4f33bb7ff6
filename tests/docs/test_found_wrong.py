"""What we found wrong is complete, its files are there, and its commands say what it says."""

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from site_pages.found_wrong import FILES, all_found, found_wrong_page
from site_pages.references import names_in, with_links

from attractor.cli import main
from attractor.papers import all_claims, all_figures

DOCS = Path(__file__).parents[2] / "docs"
EVERYTHING = all_found(DOCS)
PAGES = sorted(path for path in DOCS.rglob("*.md") if "generated" not in path.parts)


def words_of(text):
    return " ".join(re.sub(r"[│─]", " ", text).split())


def printed_by(command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "200")
    program, *arguments = shlex.split(command)
    if program == "python":
        done = subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
        return done.stdout.decode()
    monkeypatch.setattr(sys, "argv", [program, *arguments])
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (None, 0)
    return printed.getvalue()


def test_every_claim_that_fails_is_in_it():
    """Remarks that begin with "fails", and statements that another claim repairs, are."""
    claims = all_claims()
    failing = {name for name, claim in claims.items() if claim.note.startswith("fails")}
    failing |= {name.removesuffix("-repaired") for name in claims if name.endswith("-repaired")}
    named = {name for one in EVERYTHING for name in one.about}
    assert failing <= named


@pytest.mark.installed("attractor_further")
def test_files_and_names_are_there_and_no_file_is_left_over():
    known = {*all_claims(), *all_figures()}
    assert [name for one in EVERYTHING for name in one.about if name not in known] == []
    files = {path.name for path in (DOCS / FILES).iterdir()}
    assert files == {one.file for one in EVERYTHING if one.file}
    assert all(one.file in one.command for one in EVERYTHING)
    assert found_wrong_page(DOCS).count("### ") == len(EVERYTHING)


QUICK = {"next-token-closed-form.npz", "transformers-as-svms-nearly-full-rank.npz"}


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(one, id=one.title, marks=() if one.file in QUICK else pytest.mark.slow)
        for one in EVERYTHING
    ],
)
def test_its_command_says_so(one, tmp_path, monkeypatch):
    if one.file:
        shutil.copy(DOCS / FILES / one.file, tmp_path)
    printed = printed_by(one.command, tmp_path, monkeypatch)
    number = re.compile(r"(?<![\w^])-?\d+\.\d+(?:e[+-]\d+)?")
    assert number.sub("#", words_of(one.output)) in number.sub("#", words_of(printed))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_claims_and_figures_that_a_page_names_exist(path):
    known = {*all_claims(), *all_figures()}
    assert [name for name in names_in(path.read_text("utf-8")) if name not in known] == []


def test_theory_names_every_claim():
    text = "".join(path.read_text("utf-8") for path in (DOCS / "theory").glob("*.md"))
    named = {*names_in(text), *(name for one in EVERYTHING for name in one.about)}
    assert set(all_claims()) - named == set()


def test_names_become_links_but_in_fences_and_links():
    fence = "```\n`max-margin/global-path`\n```\n"
    text = fence + "`max-margin/global-path`, [`max-margin/global-path`](x), `max-margin/none`"
    link = "[`max-margin/global-path`](../p/max-margin.md#max-marginglobal-path)"
    assert with_links(text, "../p/") == fence + link + text[len(fence) + 24 :]
    both = with_links("`transformers-as-svms/rank`", "")
    assert both.endswith("#transformers-as-svmsrank)")
