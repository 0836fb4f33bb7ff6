"""Runs the tutorials whose outputs are stored, and stores them: ``make docs-execute``."""

from __future__ import annotations

import datetime
import json
import platform
import sys
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from site_pages.tutorials import Tutorial, encrypt, tutorials

_PACKAGES = ("attractor", "jax", "numpy", "torch", "transformers")


def execute(tutorial: Tutorial) -> dict[str, Any]:
    """The outputs of every cell of code, with their provenance.

    Args:
        tutorial: What to run, in a kernel of its own and an empty folder.
    """
    import nbclient
    import nbformat

    encrypt()
    notebook = nbformat.from_dict(tutorial.notebook())
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        nbclient.NotebookClient(notebook, timeout=None, resources=resources).execute()
    provenance = {
        "code": tutorial.code_hash,
        "date": datetime.date.today().isoformat(),
        "seconds": round(time.perf_counter() - started, 1),
        "versions": {"Python": platform.python_version()} | _versions(),
    }
    outputs = [cell.outputs for cell in notebook.cells if cell.cell_type == "code"]
    return {"provenance": provenance, "outputs": outputs}


def _versions() -> dict[str, str]:
    installed = {one.name for one in metadata.distributions()}
    return {name: metadata.version(name) for name in _PACKAGES if name in installed}


def main(names: list[str]) -> None:
    """Runs those that are named, or all whose outputs are missing or of other code.

    Args:
        names: Names of tutorials.
    """
    for tutorial in tutorials(Path(__file__).parents[1]):
        if (names and tutorial.path.stem not in names) or not tutorial.is_stored:
            continue
        try:
            if not names:
                tutorial.stored()
                continue
        except ValueError as stale:
            print(stale)
        found = execute(tutorial)
        tutorial.outputs_path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        print(f"{tutorial.outputs_path.name}: {found['provenance']['seconds']} s")


if __name__ == "__main__":
    main(sys.argv[1:])
