"""The fuzzer of the solvers: a fast part of it, and how its runs are kept and reported."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from attractor.margin import solve
from fuzzing import margin_problems
from fuzzing.margin_families import ALIKE, FAMILIES, make
from fuzzing.margin_problems import Case, Record, examine, fitting, geometries, run, run_block

ROOT = Path(margin_problems.__file__).parents[1]


@pytest.mark.long
def test_problems_of_all_families_in_all_geometries():
    done, record = set(), Record(0, "all")
    for i, family in enumerate(FAMILIES):
        case = Case.of(family, 3 * ALIKE * i + i)
        names = sorted(fitting(case.plain.shape), key=lambda name: (name in done, name))[:4]
        done.update(names)
        for name in names:
            solution = solve(case.problem, geometries()[name])
            examine(record, case, name, solution, rng=np.random.default_rng(i), alone=False)
    assert record.faults == []
    assert {key.split("|")[1] for key in record.counts if key.startswith("status")} == set(
        geometries()
    )
    told = {key.split("|")[2] for key in record.counts if key.startswith("status")}
    assert told >= {"optimal", "infeasible"}


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "line_six:0:Nuclear()",
        "near_opposite:10:Nuclear()",
        "columns_of_all_sizes:1:Spectral()",
        "columns_of_all_sizes:8:Lp(p=inf)",
    ],
)
def test_what_was_wrong_once_is_right(name, capsys):
    assert margin_problems.run_only(name) == []


def test_a_problem_is_the_same_alone_and_those_next_to_it_have_its_shape():
    for family in FAMILIES:
        made = [make(family, seed) for seed in range(ALIKE)]
        assert len({(one.left.shape, one.right.shape) for one in made}) == 1
        np.testing.assert_array_equal(make(family, 5).left, made[5].left)
        if len(made[0].bounds):
            assert any(not np.array_equal(one.bounds, made[0].bounds) for one in made) or any(
                not np.array_equal(one.left, made[0].left) for one in made[1:]
            )


def test_a_fault_is_recorded_with_the_name_that_makes_it_again(monkeypatch, capsys):
    answer_of = margin_problems.answer_of

    def off(solution):
        answer = answer_of(solution)
        return margin_problems.dataclasses.replace(answer, norm=answer.norm * 1.001)

    monkeypatch.setattr(margin_problems, "answer_of", off)
    found = run_block(0, list(FAMILIES).index("one_row"))["faults"]
    assert found
    name = found[0]["problem"]
    assert found[0]["fault"].startswith("norm: ")
    assert margin_problems.main(["--only", name]) == 1
    monkeypatch.undo()
    assert margin_problems.main(["--only", name]) == 0
    assert "no fault" in capsys.readouterr().out


def test_an_exception_is_a_fault_and_stops_nothing(monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("nothing left")

    monkeypatch.setattr(margin_problems, "solve", broken)
    found = run_block(0, list(FAMILIES).index("one_row"))["faults"]
    assert len(found) == margin_problems.NORMS_A_BLOCK
    assert all("ZeroDivisionError: nothing left" in fault["fault"] for fault in found)


def test_a_call_that_hangs_is_a_fault(monkeypatch):
    monkeypatch.setattr(margin_problems, "_LONGEST", 0.05)
    record = Record(0, "one_row")
    with record.watched("one_row:0:Lp(1)"):
        while True:
            pass
    assert "took more than" in record.faults[0]["fault"]


def without_times(folder: Path):
    report = json.loads((folder / "report.json").read_text())
    return {key: value for key, value in report.items() if key != "time"}


@pytest.mark.long
def test_a_run_that_was_killed_goes_on_with_the_same_results(tmp_path, monkeypatch):
    few = {name: FAMILIES[name] for name in ("no_constraints", "one_row", "integer_grids")}
    monkeypatch.setattr(margin_problems, "FAMILIES", few)
    count = 5 * ALIKE * margin_problems.NORMS_A_BLOCK
    run(tmp_path / "whole", 7, count, 10, 1, quiet=True)
    lines = (tmp_path / "whole" / "blocks.jsonl").read_text().splitlines()
    assert len(lines) == 5
    cut = tmp_path / "cut"
    run(cut, 7, count, 0, 1, quiet=True)  # no time: settings alone
    (cut / "blocks.jsonl").write_text(f"{lines[0]}\n{lines[1]}\n{lines[2][:40]}")
    report = run(cut, 7, count, 10, 1, quiet=True)
    assert report["problems"] == count
    assert without_times(cut) == without_times(tmp_path / "whole")
    assert "160 problems" in (cut / "report.txt").read_text()
    with pytest.raises(SystemExit, match="other settings"):
        run(cut, 8, count, 10, 1, quiet=True)


def test_names_of_no_problem_are_refused():
    for text in ("one_row:0:Lp(-1)", "one_rows:0:Lp(1)", "one_row:x:Lp(1)"):
        with pytest.raises(SystemExit, match="names no problem"):
            margin_problems.main(["--only", text])
    with pytest.raises(SystemExit):
        margin_problems.main(["--only", "one_row"])


@pytest.mark.slow
def test_nothing_is_lost_and_nothing_goes_on_when_a_run_is_killed(tmp_path):
    count = 16 * ALIKE * margin_problems.NORMS_A_BLOCK
    whole = run(tmp_path / "whole", 2, count, 30, 2, quiet=True)
    killed, lines = tmp_path / "killed", 0
    command = [sys.executable, "-m", "fuzzing.margin_problems", "--count", str(count)]
    command += ["--seed", "2", "--processes", "2", "--out", str(killed)]
    for _ in range(2):
        process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
        wanted = lines + 5
        while lines < wanted:
            time.sleep(0.2)
            blocks = killed / "blocks.jsonl"
            lines = blocks.read_bytes().count(b"\n") if blocks.exists() else 0
            assert process.poll() is None
        process.kill()
        process.wait()
        size = blocks.stat().st_size
        time.sleep(3)
        assert blocks.stat().st_size == size
    report = run(killed, 2, count, 30, 2, quiet=True)
    assert report["problems"] == count
    assert without_times(killed) == without_times(tmp_path / "whole")
    assert whole["problems"] == count


@pytest.mark.slow
def test_thousands_of_problems(tmp_path):
    report = run(tmp_path, 1, 6000, 30, 2, quiet=True)
    assert report["problems"] >= 6000
    assert report["faults"] == []
    told = report["counts"]["status"]["all"]
    assert told["stopped early"] <= 0.06 * report["problems"]
    hard = report["counts"]["stopped"]
    assert sum(row.get("within rounding", 0) for row in hard.values()) <= 0.01 * report["problems"]


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        "known_optimum:18000000011:BlockSum('3l_inf[:,:by1]')",  # nearly dependent inequalities
        "near_parallel:18000000035:Schatten(p=3)",  # a shorter point on the edge of one
        "near_parallel:18000000066:Lp(p=1.5)",
        "subnormal_bounds:18000000005:Lp(p=8)",  # a margin beyond the largest float
    ],
)
def test_a_right_answer_is_found_right(text):
    assert margin_problems.run_only(text) == []
