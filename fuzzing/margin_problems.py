"""Fuzzes the solvers of margin problems: `python -m fuzzing.margin_problems`.

Blocks of problems of all families are solved in several geometries each, in batches, ragged
batches and alone; every answer is held against exact arithmetic. The blocks done so far lie in the
folder of the run: a run that was killed goes on where it was, with the same results.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import dataclasses
import functools
import importlib.util
import itertools
import json
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from pathlib import Path
from types import ModuleType
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # processes share the machine's cores
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from attractor.geometry import (
    BlockMaximum,
    BlockSum,
    Frobenius,
    Geometry,
    Lp,
    Nuclear,
    Schatten,
    Spectral,
)
from attractor.geometry.registry import registered_geometries
from attractor.margin import MarginProblem, Solution, solve
from attractor.margin.certificates.certificate_file import contents
from attractor.support.errors import InvalidInputError, Status
from attractor.support.progress import progress_bar
from fuzzing import exact_check
from fuzzing.exact_check import Answer, Known, Problem
from fuzzing.exact_vertex import only_vertex
from fuzzing.fuzz_report import summarize, table
from fuzzing.margin_families import ALIKE, FAMILIES, Made, make

TOLERANCE = 1e-9
NORMS_A_BLOCK = 4
_LONGEST = 60.0
"""Seconds of the processor after which a call counts as hanging."""
_PROBED, _FILED = 4, 8
"""One unique answer in so many is probed for other solutions; one in so many is filed."""
_TIGHTEST = 1e-13
"""Gap asked of other solutions."""
_ASIDE = 3e-3
"""How far from a solution others are looked for, relative to it."""
_SEEDS = 10**8
"""Seeds of problems from one seed of a run to the next."""


class Hanging(Exception):
    """A call took longer than it may."""


@functools.cache
def geometries() -> dict[str, Geometry]:
    """Every geometry fuzzed, by how it is written: these, and the examples of all registered."""
    named = [
        Frobenius(), *map(Lp, (1, 1.1, 1.5, 1.75, 2, 2.5, 3, 6, 10, math.inf)),
        Nuclear(), Spectral(), *map(Schatten, (1.5, 2, 3, 4)),
        BlockMaximum("2 spectral[0:2]", "l_1.5[2:]"), BlockMaximum("nuclear[0:1]", "9 l_1[1:]"),
        BlockSum("spectral[:, 0:1]", "0.1 frobenius[:, 1:]"),
    ]  # fmt: skip
    named += [example for kind in registered_geometries() for example in kind.examples()]
    return {repr(geometry).replace(" ", ""): geometry for geometry in named}


def fitting(shape: tuple[int, int]) -> list[str]:
    """Those that are norms of matrices of a shape, in order: blocks may need more rows."""

    def fits(geometry: Geometry) -> bool:
        try:
            geometry.norm(np.zeros(shape))
        except InvalidInputError:
            return False
        return True

    return sorted(name for name, geometry in geometries().items() if fits(geometry))


def norm_of(geometry: Geometry, shape: tuple[int, int]) -> tuple[str, Any]:
    """The family and the exponent that a geometry stands for, or the family and the blocks."""
    if isinstance(geometry, Frobenius):
        return "entrywise", 2.0
    if isinstance(geometry, (Lp, Schatten)):
        return "entrywise" if isinstance(geometry, Lp) else "schatten", float(geometry.p)
    if isinstance(geometry, (BlockMaximum, BlockSum)):
        blocks = (
            (
                (piece.rows.start, piece.rows.stop),
                (piece.columns.start, piece.columns.stop),
                piece.weight,
                *norm_of(piece.geometry, piece.shape),
            )
            for piece in geometry.pieces(shape)
        )
        return "maximum" if isinstance(geometry, BlockMaximum) else "sum", tuple(blocks)
    raise TypeError(f"say in fuzzing.margin_problems which norm {geometry!r} is")


@functools.cache
def certificate_checker() -> ModuleType:
    """``tools/verify_certificate.py``."""
    path = Path(__file__).parents[1] / "tools" / "verify_certificate.py"
    spec = importlib.util.spec_from_file_location("verify_certificate", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclasses.dataclass(frozen=True)
class Case:
    """A problem for the solver and for the checker, and what is known of it."""

    name: str
    problem: MarginProblem
    plain: Problem
    known: Known

    @classmethod
    def of(cls, family: str, seed: int) -> Case:
        """The case of that name; what is said to be known is believed if it holds exactly."""
        made = make(family, seed)
        plain = Problem(made.left, made.right, made.bounds, made.equality)
        return cls(f"{family}:{seed}", _as_problem([made]), plain, _known(plain, made))


def _known(plain: Problem, made: Made) -> Known:
    feasible, contradiction = made.feasible, made.contradiction
    if feasible is not None and not exact_check.meets(plain, feasible):
        feasible = None
    if contradiction is not None and not exact_check.contradicts(plain, contradiction):
        contradiction = None
    return Known(feasible, contradiction, made.optimum)


def _as_problem(made: list[Made], *, ragged: np.random.Generator | None = None) -> MarginProblem:
    """A single problem, or a batch of them with empty slots that hold anything."""
    if ragged is None:
        (one,) = made
        return MarginProblem(one.left, one.right, one.bounds, one.equality)
    count, m = len(made), len(made[0].bounds)
    d, e = made[0].left.shape[1], made[0].right.shape[1]
    left, right = ragged.normal(size=(count, m + 2, d)), ragged.normal(size=(count, m + 2, e))
    bounds, equality = ragged.normal(size=(count, m + 2)), ragged.random((count, m + 2)) < 0.5
    present = np.zeros((count, m + 2), dtype=bool)
    for i, one in enumerate(made):
        slots = np.sort(ragged.permutation(m + 2)[:m])
        left[i, slots], right[i, slots] = one.left, one.right
        bounds[i, slots], equality[i, slots], present[i, slots] = one.bounds, one.equality, True
    return MarginProblem(left, right, bounds, equality, present)


def answer_of(solution: Solution) -> Answer:
    """What a solution of a single problem says."""
    evidence = solution.rank_evidence
    return Answer(
        *norm_of(solution.geometry, solution.problem.shape),
        TOLERANCE,
        str(solution.status),
        solution.W,
        solution.multipliers,
        **{
            name: float(getattr(solution, name))
            for name in (
                "norm value margin dual_value dual_norm gap kkt_residual equality_residual "
                "farkas_residual"
            ).split()
        },
        rank=int(solution.rank),
        support=solution.support,
        rank_evidence=None if evidence is None else dataclasses.asdict(evidence),
        uniqueness=str(solution.uniqueness),
        other_solution=solution.other_solution,
    )


class Record:
    """What came of a block, as it is written."""

    def __init__(self, block: int, family: str) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.faults: list[dict[str, str]] = []
        self.open: list[dict[str, str]] = []
        self.calls: list[tuple[float, int, str]] = []
        self.worst: list[tuple[float, str]] = []
        self.block, self.family = block, family

    def count(self, kind: str, geometry: str, what: str) -> None:
        """One more of a kind, in a geometry."""
        self.counts[f"{kind}|{geometry}|{what}"] += 1

    def fault(self, name: str, text: str) -> None:
        """Something wrong with a problem in a geometry."""
        self.faults.append({"problem": name, "fault": text})

    @contextlib.contextmanager
    def watched(self, name: str, size: int = 1) -> Iterator[None]:
        """Times a call on the processor; an exception, or too long a time, is a fault."""
        begun = time.process_time()
        try:
            with _limited(_LONGEST):
                yield
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
            self.fault(name, f"exception: {text}")
        self.calls.append((time.process_time() - begun, size, name))

    def as_json(self) -> dict[str, Any]:
        """The record; how long things took is kept apart, as it differs from run to run."""
        return {
            "block": self.block,
            "family": self.family,
            "counts": dict(sorted(self.counts.items())),
            "faults": self.faults,
            "open": self.open,
            "worst_gap": max(self.worst, default=None),
            "time": {
                "solving": sum(seconds for seconds, *_ in self.calls),
                "slowest": max(self.calls, key=lambda c: c[0] / c[1], default=None),
            },
        }


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raises an exception after a time, where the system can."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def ring(*_: object) -> None:
        raise Hanging(f"took more than {seconds:g} s of processor time, or ten times that")

    # The processor's time, which other work on the machine leaves alone; real time for what waits.
    alarms = ((signal.ITIMER_PROF, signal.SIGPROF, 1), (signal.ITIMER_REAL, signal.SIGALRM, 10))
    before = [signal.signal(number, ring) for _, number, _ in alarms]
    for timer, _, times in alarms:
        signal.setitimer(timer, times * seconds)
    try:
        yield
    finally:
        for (timer, number, _), handler in zip(alarms, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def run_block(run_seed: int, block: int) -> dict[str, Any]:
    """Solves and checks the problems of a block; a warning of the library is a fault too."""
    names = list(FAMILIES)
    family, cycle = names[block % len(names)], block // len(names)
    record = Record(block, family)
    first = run_seed * _SEEDS + cycle * ALIKE
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", module="attractor")
            _solve_block(record, run_seed, first)
    except Exception:
        record.fault(f"{family}:{first}", f"exception: {traceback.format_exc()}")
    return record.as_json()


def _solve_block(record: Record, run_seed: int, first: int) -> None:
    """Problems of one shape in several geometries."""
    family, block = record.family, record.block
    cases = [Case.of(family, seed) for seed in range(first, first + ALIKE)]
    rng = np.random.default_rng([run_seed, block])
    chosen = rng.choice(fitting(cases[0].plain.shape), size=NORMS_A_BLOCK, replace=False)
    answers: list[list[Answer]] = [[] for _ in cases]
    for turn, name in enumerate(map(str, chosen)):
        geometry = geometries()[name]
        solutions: list[Solution] = []
        with record.watched(f"{cases[0].name}:{name}", len(cases)):
            if turn == 0:
                made = [make(family, seed) for seed in range(first, first + ALIKE)]
                batch = _as_problem(made, ragged=rng)
                solutions = [*_each(solve(batch, geometry, tolerance=TOLERANCE))]
            else:
                listed = [case.problem for case in cases]
                solutions = solve(listed, geometry, tolerance=TOLERANCE)
        for i, (case, solution) in enumerate(zip(cases, solutions, strict=False)):
            alone = i == block % len(cases)
            answer = examine(record, case, name, solution, rng=rng, alone=alone)
            if answer is not None:
                answers[i].append(answer)
    for case, several in zip(cases, answers, strict=True):
        for text in exact_check.disagreements(case.plain.shape, several):
            record.fault(f"{case.name}:{'+'.join(map(str, chosen))}", text)


def _each(solution: Solution) -> Iterator[Solution]:
    return (solution[i] for i in range(len(solution)))


def examine(
    record: Record,
    case: Case,
    geometry_name: str,
    solution: Solution,
    *,
    rng: np.random.Generator,
    alone: bool,
    everything: bool = False,
) -> Answer | None:
    """Checks one answer, counts it, and says what it was; None if asking it raised."""
    name = f"{case.name}:{geometry_name}"
    answer = None
    with record.watched(name):
        answer = answer_of(solution)
    if answer is None:
        record.count("status", geometry_name, "exception")
        return None
    record.count("status", geometry_name, answer.status)
    if answer.status == exact_check.OPTIMAL:
        record.count("uniqueness", geometry_name, answer.uniqueness)
        record.worst.append((answer.gap, name))
    if np.isfinite(answer.W).all():
        record.count("gap", record.family, "known" if answer.gap < math.inf else "not known")
    if answer.status == exact_check.STOPPED_EARLY:
        strain = exact_check.strain(case.plain, answer)
        hard = "beyond" if strain > TOLERANCE / 10 else "within"
        record.count("stopped", geometry_name, f"{hard} rounding")
        text = f"stopped early, gap {answer.gap:.3g}, {hard} rounding ({strain:.3g})"
        record.open.append({"problem": name, "what": text})
    for text in exact_check.faults(case.plain, answer, case.known):
        record.fault(name, text)
    probed, filed = (everything or not rng.integers(k) for k in (_PROBED, _FILED))
    if answer.status == exact_check.OPTIMAL and not answer.strictly_convex:
        if answer.uniqueness == exact_check.NOT_KNOWN or (
            probed and answer.uniqueness == exact_check.UNIQUE
        ):
            _probe(record, case, geometry_name, solution, answer, rng)
    if filed or answer.status == exact_check.INFEASIBLE:
        _file(record, name, solution)
    if alone:
        _alone(record, case, name, solution, answer)
    return answer


def _alone(record: Record, case: Case, name: str, solution: Solution, answer: Answer) -> None:
    """Whether the answer is the same for the problem by itself, and from multipliers to start."""
    with record.watched(name):
        single = solve(case.problem, solution.geometry, tolerance=TOLERANCE)
        if str(single.status) != answer.status:
            record.fault(name, f"alone: {single.status}, among others {answer.status}")
        _same_value(record, name, "alone", single, answer)
    with record.watched(name):
        start = np.abs(np.roll(answer.multipliers, 1))
        started = solve(case.problem, solution.geometry, tolerance=TOLERANCE, start=start)
        _same_value(record, name, "started", started, answer)
        for text in exact_check.faults(case.plain, answer_of(started), case.known):
            record.fault(name, f"started: {text}")


def _same_value(record: Record, name: str, how: str, solution: Solution, answer: Answer) -> None:
    """Whether two answers to one problem do not exclude each other."""
    states = {str(solution.status), answer.status}
    if states == {exact_check.OPTIMAL, exact_check.INFEASIBLE}:
        record.fault(name, f"{how}: {solution.status}, not {answer.status}")
    if states == {exact_check.OPTIMAL}:
        if abs(solution.value - answer.value) > 2 * TOLERANCE * answer.value:
            record.fault(name, f"{how}: {solution.value:.17g}, not {answer.value:.17g}")


def _file(record: Record, name: str, solution: Solution) -> None:
    """Whether the certificate file is accepted by its checker."""
    with record.watched(name):
        try:
            file = contents(solution)
        except InvalidInputError:  # it proves nothing, and says so
            record.count("file", "all", "none")
            return
        if solution.status is Status.INFEASIBLE and file["claim"]["kind"] != "infeasible":
            record.fault(name, f"contradiction: the file claims {file['claim']['kind']}")
        said = certificate_checker().verify(json.loads(json.dumps(file), parse_int=float))
        record.count("file", "all", said.split(" to ")[0].split(",")[0].split(" below")[0])


def _probe(
    record: Record,
    case: Case,
    geometry_name: str,
    solution: Solution,
    answer: Answer,
    rng: np.random.Generator,
) -> None:
    """Looks for another solution: one whose value of a random functional is larger, or smaller.

    The functional is of rank one, so that it is one more constraint. What comes out is believed
    if it is as good as the solution is known to be, wherever it came from: where multipliers are
    tiny, matrices that are longer by less than the tolerance lie far from the one solution.
    """
    p, W = case.plain, answer.W
    most = np.abs(W).max()
    size = float(np.linalg.norm(W / most)) * float(most) if most else 0.0
    a, b = rng.normal(size=p.shape[0]), rng.normal(size=p.shape[1])
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    other, refuted, as_good = None, 0, 4 * answer.gap + 2.0**-44
    if 0 < size < 1e300 and not exact_check.only_one(p, answer):
        aside = [
            MarginProblem(
                np.concatenate([p.left, sign * a[None]]),
                np.concatenate([p.right, b[None]]),
                np.append(p.bounds, sign * float(a @ W @ b) + _ASIDE * size),
                np.append(p.equality, False),
            )
            for sign in (1, -1)
        ]
        with record.watched(f"{case.name}:{geometry_name}", 2):
            for found in solve(aside, solution.geometry, tolerance=_TIGHTEST):
                if found.dual_value > answer.value:  # whatever lies there is longer
                    refuted += 1
                elif np.isfinite(found.W).all() and not exact_check.solution_fault(
                    p, answer.family, answer.p, answer.dual_value, found.W, as_good
                ):
                    other = found.W
    many = other is not None and exact_check.distance(W, other) >= _ASIDE / 2
    alone = refuted == 2 or exact_check.only_one(p, answer)
    if many and only_vertex(p, answer):
        many, alone = False, True
    shown = "others found" if many else "no others" if alone else "nothing shown"
    if answer.uniqueness == exact_check.UNIQUE:
        record.count("probed", geometry_name, shown)
        if many:
            apart = exact_check.distance(W, other)
            record.fault(f"{case.name}:{geometry_name}", f"uniqueness: another at {apart:.3g}")
    else:
        record.count("not known", geometry_name, shown)
        text = f"uniqueness not known, {shown}"
        record.open.append({"problem": f"{case.name}:{geometry_name}", "what": text})


def run_only(text: str) -> list[str]:
    """Runs one problem, alone and among those of its shape, and says all that there is to say."""
    family, seed, geometry_name = [*text.split(":", 2), "", ""][:3]
    if family not in FAMILIES or not seed.isdigit() or geometry_name not in geometries():
        raise SystemExit(
            f"--only: {text!r} names no problem. Give FAMILY:SEED:GEOMETRY, a family of "
            f"{', '.join(FAMILIES)} and a geometry of {', '.join(geometries())}."
        )
    geometry, seed = geometries()[geometry_name], int(seed)
    first = seed - seed % ALIKE
    record = Record(0, family)
    case = Case.of(family, seed)
    rng = np.random.default_rng(seed)
    alike = [Case.of(family, s) for s in range(first, first + ALIKE)]
    for among in ([case], alike):
        solutions: list[Solution] = []
        with record.watched(f"{case.name}:{geometry_name}", len(among)):
            solutions = solve([c.problem for c in among], geometry, tolerance=TOLERANCE)
        if solutions:
            solution = solutions[seed - first if len(among) > 1 else 0]
            print(solution)
            print(f"uniqueness: {solution.uniqueness}\n{solution.other_solution}")
            examine(record, case, geometry_name, solution, rng=rng, alone=True, everything=True)
    return sorted({fault["fault"] for fault in record.faults})


def run(
    folder: Path, run_seed: int, count: int, minutes: float, processes: int, *, quiet: bool = False
) -> dict[str, Any]:
    """Runs the blocks that are not done yet, for so long, and returns the report."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "seed": run_seed, "alike": ALIKE, "families": list(FAMILIES),
        "geometries": sorted(geometries()), "norms_a_block": NORMS_A_BLOCK,
    }  # fmt: skip
    kept = folder / "settings.json"
    if kept.exists() and json.loads(kept.read_text("utf-8")) != settings:
        raise SystemExit(f"--out: {folder} holds a run of other settings. Give a new folder.")
    kept.write_text(json.dumps(settings, indent=1), "utf-8")
    path, each = folder / "blocks.jsonl", ALIKE * NORMS_A_BLOCK
    done = {record["block"]: record for record in _read(path)}
    wanted = [n for n in range(-(-count // each)) if n not in done]
    until = time.monotonic() + 60 * minutes
    total = each * (len(done) + len(wanted))
    with (
        path.open("a", encoding="utf-8") as file,
        progress_bar("Fuzzing", total, enabled=not quiet) as advance,
    ):
        advance.skip(each * len(done))
        for record in _records(functools.partial(run_block, run_seed), wanted, processes, until):
            file.write(json.dumps(record) + "\n")
            file.flush()
            done[record["block"]] = record
            advance(each)
            advance.note(f"{sum(len(r['faults']) for r in done.values())} faults")
    report = summarize([done[n] for n in sorted(done)], settings)
    (folder / "report.json").write_text(json.dumps(report, indent=1), "utf-8")
    (folder / "report.txt").write_text(table(report), "utf-8")
    return report


def _records(
    work: Callable[[int], dict[str, Any]], blocks: list[int], processes: int, until: float
) -> Iterator[dict[str, Any]]:
    """Results of blocks as they are done; none is begun after the time is up."""
    if processes == 1:
        for block in blocks:
            if time.monotonic() >= until:
                return
            yield work(block)
        return
    context = multiprocessing.get_context("spawn")
    waiting = iter(blocks)
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_end_with_parent) as pool:
        running = {pool.submit(work, n) for n in itertools.islice(waiting, 2 * processes)}
        while running:
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                yield future.result()
                block = next(waiting, None) if time.monotonic() < until else None
                if block is not None:
                    running.add(pool.submit(work, block))


def _end_with_parent() -> None:
    """Ends this process when the one that began it is killed; else it would wait for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _read(path: Path) -> Iterator[dict[str, Any]]:
    """Records written so far; a last one cut short by a kill is cut off."""
    if not path.exists():
        return
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if whole != text:
        path.write_bytes(whole)
    yield from map(json.loads, whole.decode("utf-8").splitlines())


def main(arguments: list[str] | None = None) -> int:
    """Runs the fuzzer; exit status 1 if it found a fault."""
    parser = argparse.ArgumentParser(prog="python -m fuzzing.margin_problems", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="problems to solve")
    parser.add_argument("--minutes", type=float, default=60, help="begin no block after these")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", metavar="FAMILY:SEED:GEOMETRY", help="one problem, again")
    chosen = parser.parse_args(arguments)
    if chosen.only:
        faults = run_only(chosen.only)
        print("\n".join(faults) or "no fault")
        return int(bool(faults))
    report = run(chosen.out, chosen.seed, chosen.count, chosen.minutes, chosen.processes)
    print(table(report))
    return int(bool(report["faults"]))


if __name__ == "__main__":
    sys.exit(main())
