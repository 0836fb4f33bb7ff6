"""The widget in JupyterLab and in marimo: what is dragged is answered by the kernel."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from shown import Shown

import attractor

CELL = """
import attractor as at

tokens = at.Tokens.prompt_vector(
    [[[0.9, 1.0], [-1.1, 0.4], [0.2, -0.9]], [[1.3, 0.2], [-0.4, -1.2], [-0.8, 0.9]]],
    labels=[1, 1],
)
explorer = at.explore(tokens, at.LinearHead([1.0, 0.4]), steps=200)
"""
MARIMO = f"""
import marimo

app = marimo.App()


@app.cell
def _():
{re.sub("^(?=.)", "    ", CELL, flags=re.M)}
    explorer
    return
"""
SOURCE = str(Path(attractor.__file__).parents[1])


@pytest.fixture
def started(tmp_path):
    """Starts a server with settings of its own, and gives the address that it says."""
    running = []

    def start(*words, address):
        log = open(tmp_path / "said", "w+b")
        own = {name: str(tmp_path / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR",
               "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "HOME", "XDG_CONFIG_HOME")}  # fmt: skip
        environment = os.environ | own | {"PYTHONPATH": SOURCE, "JUPYTER_PREFER_ENV_PATH": "1"}
        process = subprocess.Popen(
            [sys.executable, "-m", *words], stdout=log, stderr=log, cwd=tmp_path, env=environment
        )
        running.append((process, log))
        end = time.monotonic() + 120
        while time.monotonic() < end:
            said = (tmp_path / "said").read_text("utf-8", "replace")
            if found := re.search(address, said):
                return found[0]
            assert process.poll() is None, said
            time.sleep(0.2)
        raise TimeoutError(said)

    yield start
    for process, log in running:
        process.terminate()
        process.wait(30)
        log.close()


@pytest.fixture
def page(chromium):
    context = chromium.new_context(viewport={"width": 1300, "height": 1100})
    context.set_default_timeout(90_000)
    shown = Shown(context.new_page())
    yield shown
    assert shown.refused == []
    context.close()


def assert_answered(shown):
    """The kernel answers at first, and again what is moved, and agrees."""
    shown.until("e !== undefined", 120)
    words = shown.page.locator(".kernel")
    words.filter(has_text="Python agrees").wait_for()
    first, before = words.inner_text(), shown.state
    token = shown.token(0, 0)
    token.scroll_into_view_if_needed()
    x, y = shown.middle(token.locator("path"))
    shown.page.mouse.move(x, y)
    shown.page.mouse.down()
    shown.page.mouse.move(x - 30, y + 20, steps=5)
    shown.page.mouse.up()
    shown.settled()
    assert shown.state["keys"] != before["keys"]
    end = time.monotonic() + 60
    while (said := words.inner_text()) in ("", first):
        assert time.monotonic() < end, said
        shown.page.wait_for_timeout(50)
    off = re.search(r"norm (to the last bit|to (\S+),)", said)
    assert off and (off[2] is None or float(off[2]) < 1e-7), said


@pytest.mark.skipif(find_spec("jupyterlab") is None, reason="pip install jupyterlab")
def test_jupyterlab(started, page, tmp_path):
    cells = [{"cell_type": "code", "id": f"cell{k}", "metadata": {}, "outputs": [],
              "execution_count": None, "source": code}
             for k, code in enumerate((CELL, "explorer"))]  # fmt: skip
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": cells}
    (tmp_path / "explore.ipynb").write_text(json.dumps(notebook))
    root = started(
        "jupyterlab", "--no-browser", "--allow-root", "--port=0", "--IdentityProvider.token=",
        "--ServerApp.password=", "--LabApp.news_url=", "--ServerApp.disable_check_xsrf=True",
        address=r"http://localhost:\d+/",
    )  # fmt: skip
    page.page.goto(f"{root}lab/tree/explore.ipynb")
    page.page.get_by_text("at.explore(").first.wait_for()
    page.page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").first.wait_for()
    begun = page.page.locator(".jp-InputPrompt", has_text=re.compile(r"\[[*\d]"))
    for _ in range(20):  # nothing is run before the kernel is connected, which no sign tells
        page.page.locator(".lm-MenuBar-itemLabel", has_text=re.compile("^Run$")).click()
        page.page.locator(".lm-Menu-itemLabel", has_text=re.compile("^Run All Cells$")).click()
        page.page.wait_for_timeout(2000)
        if begun.count():
            break
    assert_answered(page)


@pytest.mark.skipif(find_spec("marimo") is None, reason="pip install marimo")
def test_marimo(started, page, tmp_path):
    (tmp_path / "explore.py").write_text(MARIMO)
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    root = started(
        "marimo", "run", "explore.py", "--headless", "--no-token", "--port", str(port),
        address=rf"http://localhost:{port}",
    )  # fmt: skip
    page.page.goto(root)
    assert_answered(page)
