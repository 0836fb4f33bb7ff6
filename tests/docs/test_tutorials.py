"""Tutorials are notebooks that parse, that readers find, and whose stored outputs are theirs."""

import ast
import json
import re
from pathlib import Path

import pytest
from site_pages.tutorials import Tutorial, tutorials

DOCS = Path(__file__).parents[2] / "docs"
ALL = tutorials(DOCS)
LINK = re.compile(r"\]\(([^)\s#:]+)(?:#[^)]*)?\)")
FRONT = "---\nkernelspec: {name: python3, display_name: Python 3}\n%s---\n"


@pytest.fixture
def written(tmp_path):
    def write(text, front=""):
        path = tmp_path / "one.md"
        path.write_text(FRONT % front + text, "utf-8")
        return Tutorial.read(path)

    return write


@pytest.mark.parametrize("tutorial", ALL, ids=lambda one: one.path.stem)
def test_a_tutorial_asks_a_question_in_cells_of_python_and_says_what_next(tutorial):
    assert tutorial.front["kernelspec"]["name"] == "python3"
    assert tutorial.front["jupytext"]["text_representation"]["format_name"] == "myst"
    assert re.match(r"# .*\n", tutorial.cells[0][0])
    assert "## What next" in tutorial.cells[-1][0]
    for code in tutorial.code:
        ast.parse(re.sub(r"^%.*", "", code, flags=re.M))
    for text, code in tutorial.cells:
        assert code is not None or "{code-cell}" not in text


@pytest.mark.parametrize("tutorial", ALL, ids=lambda one: one.path.stem)
def test_links_of_a_tutorial_lead_somewhere(tutorial):
    for link in LINK.findall("\n".join(text for text, code in tutorial.cells if code is None)):
        assert (tutorial.path.parent / link).exists() and "generated/" not in link, link


def test_every_tutorial_is_in_the_list_of_questions():
    page = (DOCS / "tutorials" / "index.md").read_text("utf-8")
    listed = re.findall(r"^(\w+)$", page[page.index("```{toctree}") :], re.M)
    assert sorted(listed) == [one.path.stem for one in ALL]
    assert [one.path.name for one in ALL if f"]({one.path.name})" not in page] == []
    assert "\ntutorials/index\n" in (DOCS / "index.md").read_text("utf-8")


@pytest.mark.parametrize(
    "tutorial", [one for one in ALL if one.is_stored], ids=lambda one: one.path.stem
)
def test_stored_outputs_are_those_of_the_present_code(tutorial):
    found = tutorial.stored()  # raises otherwise, and says how to renew them
    assert len(found["outputs"]) == len(tutorial.code)
    assert all(one["output_type"] != "error" for cell in found["outputs"] for one in cell)


def test_cells_are_told_from_prose_with_their_options(written):
    found = written("# T\n\n```{code-cell} ipython3\n:tags: [hide-input]\nx = 1\n```\nwords\n")
    assert found.cells == (("# T", None), ("x = 1", {"tags": ["hide-input"]}), ("words", None))
    notebook = found.notebook([[{"output_type": "stream", "name": "stdout", "text": "1"}]])
    assert notebook["metadata"]["language_info"]["pygments_lexer"] == "ipython3"
    assert [cell["cell_type"] for cell in notebook["cells"]] == ["markdown", "code", "markdown"]
    assert notebook["cells"][1]["outputs"][0]["text"] == "1"


def test_other_code_needs_other_outputs_and_other_words_do_not(written):
    off = 'mystnb: {execution_mode: "off"}\n'
    cell = "```{code-cell} ipython3\nx = 1\n```\n"
    found = written("# T\n" + cell, off)
    with pytest.raises(ValueError, match=r"not stored yet. Run `make docs-execute TUTORIALS=one`"):
        found.stored()
    stored = {"provenance": {"code": found.code_hash}, "outputs": [[]]}
    found.outputs_path.write_text(json.dumps(stored), "utf-8")
    assert written("# Another title\n" + cell, off).stored() == stored
    with pytest.raises(ValueError, match=r"not what its outputs are of. Run `make docs-execute"):
        written("# T\n" + cell.replace("1", "2"), off).stored()


def test_a_download_says_what_to_install_and_has_no_links_into_the_site(written):
    text = "# T\n[guide](../guide.md#a), [paper](https://arxiv.org/abs/1)\n"
    cells = written(text, "needs: transformers\n").download("1.2")["cells"]
    assert "Attractor 1.2" in cells[0]["source"]
    assert "attractor[transformers]" in cells[0]["source"]
    assert cells[1]["source"] == "# T\nguide, [paper](https://arxiv.org/abs/1)"
