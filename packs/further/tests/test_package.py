"""The wheel of the pack has all that its papers need, and says where they are."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.processes
def test_the_wheel_has_every_file_and_entry_point(tmp_path):
    pytest.importorskip("hatchling")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("attractor_further-*.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
        (points,) = (name for name in opened.namelist() if name.endswith("entry_points.txt"))
        written = opened.read(points).decode()
    source = ROOT / "src"
    files = [path for path in source.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert names == {path.relative_to(source).as_posix() for path in files}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for name, package in project["entry-points"]["attractor.papers"].items():
        assert f"{name} = {package}" in written
