"""Every block of Python in README and guides runs as it stands, and prints what they show."""

import contextlib
import io
import shlex
import sys
from pathlib import Path

import pytest
from snippets import same_output, snippets

from attractor.cli import main

ROOT = Path(__file__).parents[2]
FILES = {
    path.relative_to(ROOT).as_posix(): path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
}
SLOW = {"docs/sweeps.md"}
"""Files whose blocks take seconds."""
TRAINING_LONG = {"docs/library.md"}
"""Files whose blocks take longer without optimizations than it takes to compile them optimized."""
NAMES = [
    pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())
    for name, path in FILES.items()
    if name not in TRAINING_LONG and snippets(path.read_text("utf-8"))
]
WITH_TORCH = [
    name
    for name, path in FILES.items()
    if any(one.needs for one in snippets(path.read_text("utf-8")))
]


def run_command(command, monkeypatch):
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    with contextlib.redirect_stdout(io.StringIO()), pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (None, 0)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_blocks_run_one_after_another_and_print_what_is_shown(name, tmp_path, monkeypatch):
    run_blocks(name, tmp_path, monkeypatch)


@pytest.mark.torch
@pytest.mark.parametrize("name", WITH_TORCH)
def test_blocks_that_need_pytorch_run_in_their_place(name, tmp_path, monkeypatch):
    pytest.importorskip("torch")
    run_blocks(name, tmp_path, monkeypatch, with_torch=True)


@pytest.mark.parametrize("name", sorted(TRAINING_LONG))
def test_blocks_that_train_for_long_run_and_print_what_is_shown(
    name, tmp_path, monkeypatch, optimized
):
    run_blocks(name, tmp_path, monkeypatch)


def run_blocks(name, tmp_path, monkeypatch, with_torch=False):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    namespace = {"__name__": "snippet"}
    for one in snippets(FILES[name].read_text("utf-8")):
        if one.not_run or (one.needs and not with_torch):
            continue
        if one.before:
            run_command(one.before, monkeypatch)
        printed = io.StringIO()
        code = compile("\n" * (one.line - 1) + one.code, str(FILES[name]), "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        if one.output is not None:
            assert same_output(one.output, printed.getvalue()), printed.getvalue()


def test_a_block_is_found_with_its_mark_and_its_output():
    text = "words\n\n<!-- needs: torch -->\n```python\nprint(1)\n```\n\n```text\n1\n```\n"
    (found,) = snippets(text)
    assert (found.line, found.code, found.output) == (5, "print(1)\n", "1\n")
    assert (found.needs, found.not_run, found.before) == ("torch", "", "")


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("gap 7.8e-14", "gap 9.1e-14", True),
        ("norm 0.29170", "norm 0.29171", True),
        ("norm 0.2917", "norm 0.3017", False),
        ("59 of 100", "58 of 99", True),
        ("59 of 100", "12 of 100", False),
        ("optimal", "infeasible", False),
        ("a 1", "a", False),
    ],
)
def test_output_is_compared_but_for_last_digits(shown, printed, same):
    assert same_output(shown, printed) is same
