"""A full disk is one error that names the file; nothing is lost, and nothing ends the process."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import attractor

SOURCE = Path(attractor.__file__).parent
SCRIPT = Path(__file__).with_name("full_disk.py")
WRITING = {"to_netcdf", "savefig", "savez", "savez_compressed", "save_file", "write_text",
           "write_bytes", "to_csv", "to_json", "tofile"}  # fmt: skip


def check(lines, count, words):
    found = [json.loads(line) for line in lines.splitlines()]
    assert len(found) == count
    for one in found:
        assert one["error"] == "WriteError", one
        assert one["name"].split(".")[0] in one["message"], one
        assert f"cannot be written: {words}. What was there before is as it was" in one["message"]
        assert one["same"] and not one["left"], one


@pytest.mark.processes
@pytest.mark.skipif(os.name == "nt", reason="limits of POSIX")
def test_where_files_may_not_grow(tmp_path):
    command = [sys.executable, SCRIPT, tmp_path, "limited", "few"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    check(done.stdout, 15, "File too large")


def in_small_file_system(folder, *command):
    """A command that sees a file system of 256 KiB in a folder, and nobody else does."""
    mount = 'mount -t tmpfs -o size=256k tmpfs "$0" && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", mount, folder, *map(str, command)]


def mounts(folder):
    if shutil.which("unshare") is None:
        return False
    command = in_small_file_system(folder, "true")
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


@pytest.mark.slow
def test_every_kind_of_file_on_a_full_disk(tmp_path):
    if not mounts(tmp_path):
        pytest.skip("this machine does not let us mount a file system")
    command = in_small_file_system(tmp_path, sys.executable, SCRIPT, tmp_path, "filled", "all")
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    check(done.stdout, 23, "No space left on device")


@pytest.mark.long
def test_nothing_but_storage_writes_files():
    """Others make the bytes; what does write stands in a block that gives a temporary path."""
    wrong = []
    for path in SOURCE.rglob("*.py"):
        if {"storage", "provenance"} & {*path.relative_to(SOURCE).parts[:2]}:
            continue  # the latter edits the copy that ``embed`` makes
        text = path.read_text()
        if not re.search(rf"\.({'|'.join(WRITING)})\(|\b(open|File)\(", text):
            continue
        tree = ast.parse(text)
        sheltered = {
            id(inside)
            for block in ast.walk(tree)
            if isinstance(block, ast.With)
            and any("atomic_" in ast.unparse(item.context_expr) for item in block.items)
            for inside in ast.walk(block)
        }
        for node in ast.walk(tree):
            if ast.unparse(node).startswith("super().savefig("):
                continue  # matplotlib's own, which a user calls with a path
            if isinstance(node, ast.Call) and id(node) not in sheltered and writes(node):
                wrong.append(f"{path.relative_to(SOURCE)}:{node.lineno} {ast.unparse(node)[:60]}")
    assert wrong == []


def writes(call):
    """Whether a call writes to a path, and not into memory."""
    name = ast.unparse(call.func).rpartition(".")[2]
    given = [ast.unparse(argument) for argument in call.args]
    if name in ("open", "File"):
        modes = {*given, *(ast.unparse(keyword.value) for keyword in call.keywords)}
        return bool({"'w'", "'wb'", "'a'", "'r+'", "'x'"} & modes)
    # A verdict's own to_csv and to_json write as they should.
    own = ast.unparse(call.func) in ("verdict.to_csv", "verdict.to_json")
    return name in WRITING and bool(given) and given[0] not in ("drawing", "content") and not own
