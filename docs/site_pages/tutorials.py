"""Tutorials: pages that are notebooks, with what running them gave, and their downloads.

A source is ``docs/tutorials/NAME.md``, a MyST notebook. Its cells run whenever the pages are built,
unless its front matter says ``execution_mode: "off"``: then ``NAME.outputs.json`` beside it holds
what they gave and when (``execute.py`` writes it), and both together are what Sphinx reads.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = "tutorials"
"""Where they lie, in the folder of the documentation."""

_FRONT = re.compile(r"\A---\n(.*?)^---\n", re.M | re.S)
_CODE = re.compile(r"^```\{code-cell\}[^\n]*\n((?::[^\n]*\n)*)(.*?)^```$", re.M | re.S)
_LOCAL_LINK = re.compile(r"(?<!!)\[([^]]+)\]\((?!\w+:)[^)]+\)")


@dataclass(frozen=True)
class Tutorial:
    """A source.

    Attributes:
        path: Its file.
        front: Its front matter.
        cells: Text of every cell in order, with its metadata where it is code, or None.
    """

    path: Path
    front: dict[str, Any]
    cells: tuple[tuple[str, dict[str, Any] | None], ...]

    @classmethod
    def read(cls, path: Path) -> Tutorial:
        """Reads a source.

        Args:
            path: Its file.
        """
        import yaml

        text = path.read_text("utf-8")
        front = _FRONT.match(text)
        if front is None:
            raise ValueError(f"{path}: it has no front matter. Begin it as the other tutorials do.")
        cells: list[tuple[str, dict[str, Any] | None]] = []
        end = front.end()
        for cell in _CODE.finditer(text):
            cells.append((text[end : cell.start()].strip(), None))
            options = re.sub(r"^:(\w+):", r"\1:", cell[1], flags=re.M)
            cells.append((cell[2].rstrip(), yaml.safe_load(options) or {}))
            end = cell.end()
        cells.append((text[end:].strip(), None))
        return cls(path, yaml.safe_load(front[1]), tuple(cell for cell in cells if cell[0]))

    @property
    def code(self) -> list[str]:
        """Its cells of code."""
        return [text for text, metadata in self.cells if metadata is not None]

    @property
    def code_hash(self) -> str:
        """What changes when the code does, and not when words do."""
        return hashlib.sha256(json.dumps(self.code).encode()).hexdigest()

    @property
    def is_stored(self) -> bool:
        """Whether its outputs are stored, as running it takes too long for every build."""
        return self.front.get("mystnb", {}).get("execution_mode") == "off"

    @property
    def outputs_path(self) -> Path:
        """Where stored outputs lie."""
        return self.path.with_suffix(".outputs.json")

    def stored(self) -> dict[str, Any]:
        """Stored outputs and their provenance.

        Raises:
            ValueError: If there are none, or they are those of other code.
        """
        name = self.path.stem
        renew = f"Run `make docs-execute TUTORIALS={name}` and commit {self.outputs_path.name}."
        if not self.outputs_path.exists():
            raise ValueError(f"{self.path.name}: its outputs are not stored yet. {renew}")
        found = json.loads(self.outputs_path.read_text("utf-8"))
        if found["provenance"]["code"] != self.code_hash:
            raise ValueError(f"{self.path.name}: its code is not what its outputs are of. {renew}")
        return found

    def notebook(self, outputs: list[Any] | None = None) -> dict[str, Any]:
        """The source as a Jupyter notebook.

        Args:
            outputs: Outputs of each cell of code; none where they are not given.
        """
        rest, cells = iter(outputs or []), []
        for place, (text, metadata) in enumerate(self.cells):
            cell: dict[str, Any] = {
                "id": f"cell-{place}",
                "metadata": metadata or {},
                "source": text,
            }
            if metadata is None:
                cell["cell_type"] = "markdown"
            else:
                cell |= {"cell_type": "code", "execution_count": None, "outputs": next(rest, [])}
            cells.append(cell)
        kept = {key: self.front[key] for key in ("kernelspec", "mystnb") if key in self.front}
        kept["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
        return {"cells": cells, "metadata": kept, "nbformat": 4, "nbformat_minor": 5}

    def download(self, version: str) -> dict[str, Any]:
        """The notebook as readers take it: it says what to install, and has no links into the site.

        Args:
            version: The version of the library.
        """
        notebook = self.notebook()
        extra = f"[{self.front['needs']}]" if "needs" in self.front else ""
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = _LOCAL_LINK.sub(r"\1", cell["source"])
        install = (
            f"# Written for Attractor {version}. Where it is not installed yet,\n"
            "# take off the # below, and say where its source code or its wheel lies.\n"
            f"# %pip install '/path/to/attractor{extra}'"
        )
        first = {"id": "install", "metadata": {}, "source": install, "cell_type": "code"}
        notebook["cells"].insert(0, first | {"execution_count": None, "outputs": []})
        notebook["metadata"].pop("mystnb", None)
        return notebook


def tutorials(docs: Path) -> list[Tutorial]:
    """All of them, by name.

    Args:
        docs: The folder of the documentation.
    """
    paths = sorted((docs / FOLDER).glob("*.md"))
    return [Tutorial.read(path) for path in paths if path.stem != "index"]


def encrypt() -> None:
    """Encrypts what is sent to kernels, each of which would warn otherwise in a line of its own."""
    from jupyter_client.manager import KernelManager

    if hasattr(KernelManager, "transport_encryption"):  # which older versions have not
        KernelManager.transport_encryption.default_value = "auto"


def _with_stored_outputs(app: Any, config: Any) -> None:
    """Writes notebooks of sources and stored outputs, which Sphinx reads in their place."""
    for tutorial in tutorials(Path(app.srcdir)):
        unread = ".md" if tutorial.is_stored else ".ipynb"
        config.exclude_patterns.append(f"{FOLDER}/{tutorial.path.stem}{unread}")
        if tutorial.is_stored:
            text = json.dumps(tutorial.notebook(tutorial.stored()["outputs"]))
            path = tutorial.path.with_suffix(".ipynb")
            if not path.exists() or path.read_text("utf-8") != text:
                path.write_text(text, "utf-8")


def _offer_download(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Puts a link below the title, and says when stored outputs were made."""
    source = Path(app.srcdir, page).with_suffix(".md")
    if not page.startswith(f"{FOLDER}/") or source.stem == "index":
        return
    line = f'<a href="{source.stem}.ipynb" download>Download as a notebook</a>'
    tutorial = Tutorial.read(source)
    if tutorial.is_stored:
        made = tutorial.stored()["provenance"]
        versions = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
        line += f" · run on {made['date']} in {made['seconds']:.0f} s with {html.escape(versions)}"
    context["body"] = context["body"].replace(
        "</h1>", f'</h1>\n<p class="tutorial-download">{line}</p>', 1
    )


def _write_downloads(app: Any, failure: Exception | None) -> None:
    if failure is None:
        for tutorial in tutorials(Path(app.srcdir)):
            text = json.dumps(tutorial.download(app.config.version), indent=1)
            Path(app.outdir, FOLDER, f"{tutorial.path.stem}.ipynb").write_text(text, "utf-8")


def connect(app: Any) -> None:
    """Reads stored outputs, and writes a download beside every tutorial."""
    encrypt()
    app.connect("config-inited", _with_stored_outputs)
    app.connect("html-page-context", _offer_download)
    app.connect("build-finished", _write_downloads)
