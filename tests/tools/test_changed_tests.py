"""Which test files a change can reach, in a small house."""

import subprocess

import pytest

from tools.changed_tests import Tree, changed_files

HOUSE = {
    "pyproject.toml": (
        '[project.entry-points."attractor.commands"]\n'
        'solve = "attractor.margin.command:COMMAND"\n'
        'say-rank = "attractor.margin.rank_command:COMMAND"\n'
    ),
    "src/attractor/__init__.py": "_MODULES = ('margin', 'plots')\n",
    "src/attractor/public.py": "from attractor.margin.solving import solve as solve\n",
    "src/attractor/margin/__init__.py": (
        "from attractor.support.first_use import import_on_first_use\n"
        "import_on_first_use(__name__)\n"
        "if TYPE_CHECKING:\n"
        "    from attractor.margin.solving import solve as solve\n"
        "    from attractor.margin.rank import rank as rank\n"
    ),
    "src/attractor/margin/solving.py": (
        "from typing import TYPE_CHECKING\n"
        "from attractor.margin.solution import Solution\n"
        "if TYPE_CHECKING:\n"
        "    from attractor.margin.rank import Rank\n"
        "def solve(): return Solution()\n"
    ),
    "src/attractor/margin/solution.py": (
        "class Solution:\n"
        "    def plot(self):\n"
        "        from attractor.plots import draw\n"
        "        return draw(self)\n"
        "    def __repr__(self):\n"
        "        from attractor.words import said\n"
        "        return said\n"
    ),
    "src/attractor/margin/rank.py": "def rank(): return 1\n",
    "src/attractor/plots.py": "def draw(thing): return thing\n",
    "src/attractor/words.py": "said = 'solved'\n",
    "src/attractor/cli/application.py": "GROUP = 'attractor.commands'\n",
    "src/attractor/margin/command.py": "import attractor as at\ndef solve(): at.solve().plot()\n",
    "src/attractor/margin/rank_command.py": "from attractor.margin import rank\n",
    "tests/margin/conftest.py": (
        "import pytest\n"
        "@pytest.fixture\n"
        "def ranked():\n"
        "    from attractor.margin import rank\n"
        "    return rank()\n"
    ),
    "tests/margin/test_solve.py": "import attractor as at\ndef test_solve(): at.solve()\n",
    "tests/margin/test_drawn.py": "import attractor as at\ndef test_draw(): at.solve().plot()\n",
    "tests/margin/test_ranked.py": "def test_rank(ranked): assert ranked\n",
    "tests/cli/test_commands.py": (
        "from attractor.cli import application\n"
        "def test_solve(run): run('solve tokens.npz')\n"
    ),
    "tests/cli/expected.txt": "1\n",
    "tests/cli/test_files.py": "from pathlib import Path\nFILE = Path('expected.txt')\n",
}  # fmt: skip


@pytest.fixture
def house(tmp_path):
    for name, text in HOUSE.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return Tree(tmp_path)


@pytest.mark.parametrize(
    ("changed", "reached"),
    [
        ("src/attractor/margin/solving.py", "solve drawn commands"),
        ("src/attractor/margin/solution.py", "solve drawn commands"),
        ("src/attractor/words.py", "solve drawn commands"),
        ("src/attractor/plots.py", "drawn commands"),
        ("src/attractor/margin/rank.py", "ranked"),
        ("src/attractor/margin/command.py", "commands"),
        ("src/attractor/margin/rank_command.py", ""),
        ("tests/margin/conftest.py", "solve drawn ranked"),
        ("tests/margin/test_solve.py", "solve"),
        ("tests/cli/expected.txt", "files"),
        ("docs/guide.md", ""),
        ("pyproject.toml", "solve drawn ranked commands files"),
    ],
)
def test_a_change_reaches_what_uses_it(house, changed, reached):
    found = {file.stem.removeprefix("test_") for file in house.reached([changed])}
    assert found == set(reached.split())


@pytest.mark.processes
def test_changes_that_git_does_not_know_yet_count(house):
    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=b", *words],
                       cwd=house.root, check=True, stdout=subprocess.DEVNULL)  # fmt: skip

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "all")
    assert changed_files(house.root, "HEAD") == []
    (house.root / "src/attractor/words.py").write_text("said = 'done'\n")
    (house.root / "tests/margin/test_new.py").write_text("")
    assert changed_files(house.root, "HEAD") == [
        "src/attractor/words.py", "tests/margin/test_new.py",
    ]  # fmt: skip
