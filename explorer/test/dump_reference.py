"""Answers of the library that `node --test` compares the browser's arithmetic with.

    PYTHONPATH=src python explorer/test/dump_reference.py [gradients margin local paths basins]

writes `explorer/build/reference/*.json`, or the parts that are named, in about half an hour. With
`--small`, a part of each goes from there to `explorer/test/reference/*.json.gz`, which is kept with
the source. Everything follows from seeds. Gradients need mpmath, as `check_certificates.py` does.
"""

from __future__ import annotations

import gzip
import itertools
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from dump_gradients import gradients
from exact_feasibility import constraint_rows, contradiction

import attractor as at
from attractor.files.case import Case
from attractor.maps.basins import basin_map
from attractor.margin.variants.relaxed import relaxed_problem

HERE = Path(__file__).parent
SMALL = "--small" in sys.argv
ENTRYWISE = [
    "frobenius",
    "l_1",
    "l_1.1",
    "l_1.25",
    "l_1.5",
    "l_1.75",
    "l_2.5",
    "l_3",
    "l_4",
    "l_inf",
]
NORMS = {"p": [*ENTRYWISE, "l_1.02", "l_7"], "W": [*ENTRYWISE, "spectral", "nuclear"]}


def problem(rng: np.random.Generator, family: str, kind: str) -> dict[str, Any]:
    """One problem of a family, with few digits where that leaves it what it is."""
    n, T = int(rng.integers(1, 5)), int(rng.integers(2, 8))
    if family == "one sequence":
        n = 1
    if family == "two tokens":
        T = 2
    if family == "crowded":
        n, T = (2, 6) if kind == "p" else (4, 6)
    while n * (T - 1) > 20:
        T -= 1
    keys = rng.normal(size=(n, T, 2)) + rng.normal(size=(n, 1, 2)) * (rng.random() < 0.5)
    queries = rng.normal(size=(n, 2))
    scores = rng.random((n, T))
    digits = 3
    if family in ("planted", "scaled", "relaxed", "nearly infeasible") and T > 1:
        # The best token of each sequence is moved until some matrix prefers it.
        W = rng.normal(size=(2, 2))
        for i in range(n):
            along = W[:, 0] if kind == "p" else W @ queries[i]
            keys[i] = keys[i][np.argsort(-keys[i] @ along)]
            scores[i] = np.sort(scores[i])[::-1]
    if family == "grid":
        keys, queries, digits = (
            rng.integers(-2, 3, size=keys.shape),
            rng.integers(-2, 3, size=queries.shape),
            0,
        )
    if family == "collinear":
        line = rng.integers(-3, 4, size=2) if rng.random() < 0.7 else rng.normal(size=2)
        keys = rng.integers(-4, 5, size=(n, T, 1)) * line + rng.integers(-2, 3, size=(n, 1, 2))
        digits = 17
    if family == "parallel queries":
        queries = rng.integers(-3, 4, size=(n, 1)) * rng.normal(size=2).round(3)
        digits = 17
    if family == "duplicates" and T > 2:
        keys[:, 2] = keys[:, int(rng.integers(0, 2))]
    keys, queries, scores = np.round(keys, digits), np.round(queries, digits), np.round(scores, 3)
    if family == "tied scores" and T > 1:
        scores[0, 1] = scores[0, 0] = 2
    if family == "scaled":
        keys, queries = keys * 10.0 ** rng.uniform(-8, 8), queries * 10.0 ** rng.uniform(-8, 8)
    if family == "opposed":
        # Two sequences that leave a cone of a small angle, or of none.
        angle = 10.0 ** rng.uniform(-13, -1) * (rng.random() < 0.7)
        turn = rng.uniform(0, 2 * np.pi)
        a = np.array([np.cos(turn), np.sin(turn)])
        b = -np.array([np.cos(turn + angle), np.sin(turn + angle)])
        keys, scores = np.array([[a, [0, 0]], [b, [0, 0]]]), np.array([[1.0, 0], [1, 0]])
        queries = np.repeat(np.round(rng.normal(size=(1, 2)), 3), 2, axis=0)
    found = {
        "parameterization": kind,
        "loss": "logistic",
        "keys": keys.tolist(),
        "scores": scores.tolist(),
    }
    found["queries"] = queries.tolist()
    if family == "one token":
        for name in ("keys", "scores"):
            found[name] = [row[: T if i == 0 else 1] for i, row in enumerate(found[name])]
    if family == "relaxed":
        supports = rng.random(len(keys)) < 0.6
        found["supports"] = (supports | (np.arange(len(keys)) == 0)).tolist()
    return found


FAMILIES = [
    *["generic", "planted", "grid", "collinear", "duplicates", "one sequence", "two tokens"],
    *["one token", "tied scores", "scaled", "opposed", "relaxed", "parallel queries", "planted"],
    *["crowded"] * 9,
]


def case_of(one: dict[str, Any]) -> Case:
    """The problem as the library holds it, shorter sequences filled up."""
    T = max(map(len, one["keys"]))
    keys = [row + [[0.0, 0.0]] * (T - len(row)) for row in one["keys"]]
    scores = np.array([row + [0.0] * (T - len(row)) for row in one["scores"]])
    mask = np.array([[t < len(row) for t in range(T)] for row in one["keys"]])
    queries = np.ones((len(keys), 1)) if one["parameterization"] == "p" else one["queries"]
    tokens = at.Tokens(keys, queries, np.ones(len(keys)), mask, values=scores[..., None])
    return Case(tokens, at.LinearHead(np.ones(1)), one["parameterization"])


def margin() -> list[dict[str, Any]]:
    """Margin problems of the best tokens, each in one norm, at tolerance 1e-13."""
    rng = np.random.default_rng(2026)
    out = []
    for number in range(2000):
        kind = "pW"[number % 2]
        family = FAMILIES[int(rng.integers(len(FAMILIES)))]
        one = problem(rng, family, kind)
        norm = NORMS[kind][(number // 2) % len(NORMS[kind])]
        case = case_of(one)
        selection = at.optimal_tokens(case.tokens, case.head)
        entry = {"family": family, "norm": norm, "problem": one}
        out.append(entry)
        if selection.tied.any():
            entry["status"] = "tied"
            continue
        supports = one.get("supports")
        if supports is None:
            constraints = at.MarginProblem.from_selection(case.tokens, selection)
        else:
            constraints = relaxed_problem(case.tokens, selection, np.array(supports))
        rows, bounds = constraint_rows(one, np.ravel(selection.index).tolist())
        entry["exact"] = not any(bounds) or contradiction(rows, bounds) is None
        solution = at.solve(constraints, norm, tolerance=1e-13)
        entry["status"] = solution.status.name
        entry["value"], entry["gap"] = float(solution.value), float(solution.gap)
        entry["lower"] = float(solution.certificate.dual_value[0])
        entry["support"] = np.flatnonzero(np.ravel(solution.support)).tolist()
    return out


def local() -> list[dict[str, Any]]:
    """Locally optimal selections, of small problems."""
    rng = np.random.default_rng(7)
    out = []
    for number in range(60):
        kind = "ppW"[number % 3]
        one = problem(rng, ["generic", "grid", "planted", "duplicates"][number % 4], kind)
        one["keys"] = [row[:4] for row in one["keys"][:3]]
        one["scores"], one["queries"] = [row[:4] for row in one["scores"][:3]], one["queries"][:3]
        norm = NORMS[kind][int(rng.integers(len(NORMS[kind])))]
        case = case_of(one)
        found = []
        for index in itertools.product(*(range(len(row)) for row in one["keys"])):
            selection = at.Selection.from_index(case.tokens, list(index))
            if bool(
                at.check_local_optimality(case.tokens, case.head, selection, geometry=norm).holds
            ):
                found.append(list(index))
        out.append({"problem": one, "norm": norm, "selections": found})
    return out


OPTIMIZERS = {
    "normalized_gradient_descent": at.normalized_gradient_descent,
    "gradient_descent": at.gradient_descent,
    "mirror_descent": at.mirror_descent,
    "sign_descent": at.sign_descent,
    "greedy_coordinate_descent": at.greedy_coordinate_descent,
    "spectral_descent": at.spectral_descent,
}


def optimizer_of(training: dict[str, Any]) -> at.Optimizer:
    """The library's optimizer of a training of the page."""
    settings = {k: v for k, v in training.items() if k not in ("optimizer", "plain")}
    return OPTIMIZERS[training["optimizer"]](**settings)


def trained_arrays(kind: str, start: np.ndarray) -> dict[str, np.ndarray]:
    """Initial attention parameters by name, with axes of instances and trials."""
    if kind == "KQ":
        return {"K": start[:4].reshape(1, 1, 2, 2), "Q": start[4:].reshape(1, 1, 2, 2)}
    if kind == "W":
        return {"W": start.reshape(1, 1, 2, 2)}
    return {"p": start[:2].reshape(1, 1, 2)}


def paths() -> list[dict[str, Any]]:
    """Paths of 2,000 steps: every parameterization, optimizer and loss, with decay, plain."""
    rng = np.random.default_rng(41)
    record = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000]
    out = []
    for number in range(84):
        kind = ["p", "W", "KQ", "pv"][number % 4]
        names = [name for name in OPTIMIZERS if kind != "p" or name != "spectral_descent"]
        training: dict[str, Any] = {
            "optimizer": names[(number // 4) % len(names)],
            "learning_rate": 0.1,
        }
        if training["optimizer"] == "gradient_descent":
            training["learning_rate"] = 1.0
        if training["optimizer"] == "mirror_descent":
            training["p"] = [1.5, 3, 1.75, 1.1][int(rng.integers(4))]
        if rng.random() < 0.3:
            training["weight_decay"] = [1e-3, 1e-2, 1e-12][int(rng.integers(3))]
        plain = bool(rng.random() < 0.15)
        if plain:
            training["plain"] = True
        one = problem(rng, "generic" if number % 3 else "planted", kind if kind != "pv" else "p")
        one["parameterization"] = kind
        one["loss"] = ["logistic", "exponential", "linear"][int(rng.integers(3))]
        size = {"p": 2, "W": 4, "KQ": 8, "pv": 4}[kind]
        start = np.round(0.5 * rng.normal(size=size), 3)
        keys = np.array(one["keys"])
        if kind == "pv":
            one["labels"] = rng.choice([-1.0, 1.0], size=len(keys)).tolist()
            tokens = at.Tokens(keys, np.ones((len(keys), 1)), one["labels"])
            head: Any = at.LinearHead(start[2:])
            layer: Any = at.Joint(at.PromptVector())
        else:
            case = case_of(one)
            tokens, head, layer = case.tokens, case.head, kind
        run = at.train(
            tokens,
            head,
            optimizer_of(training),
            steps=2000,
            seeds=1,
            parameterization=layer,
            loss=one["loss"],
            initial=trained_arrays(kind, start),
            record=record,
            kernel="plain" if plain else "exact",
        )
        data = run.data.isel(instance=0, seed=0, missing_dims="ignore")
        names = {"p": ["p"], "W": ["W"], "KQ": ["K", "Q"], "pv": ["p", "head_weight"]}[kind]
        points = [
            np.asarray(data[name].transpose("step", ...).values).reshape(len(record), -1)
            for name in names
        ]
        out.append(
            {
                "problem": one,
                "training": training,
                "start": start.tolist(),
                "steps": record,
                "points": np.concatenate(points, axis=1).tolist(),
                "status": str(np.ravel(run.data["status"].values)[0]),
            }
        )
    return out


def basins() -> list[dict[str, Any]]:
    """Maps of basins of prompts, several optimizers and norms."""
    rng = np.random.default_rng(3)
    out = []
    trainings = [
        {"optimizer": "normalized_gradient_descent", "learning_rate": 0.1},
        {"optimizer": "mirror_descent", "learning_rate": 0.1, "p": 1.5},
        {"optimizer": "sign_descent", "learning_rate": 0.1},
        {"optimizer": "mirror_descent", "learning_rate": 0.1, "p": 3},
        {"optimizer": "greedy_coordinate_descent", "learning_rate": 0.1},
        {"optimizer": "gradient_descent", "learning_rate": 5.0},
        {"optimizer": "normalized_gradient_descent", "learning_rate": 0.4},
    ]
    number = 0
    while len(out) < 24:
        one = problem(
            rng, ["planted", "planted", "one sequence", "duplicates", "grid"][number % 5], "p"
        )
        one["keys"], one["scores"] = (
            [row[:4] for row in one["keys"][:3]],
            [row[:4] for row in one["scores"][:3]],
        )
        one["queries"] = one["queries"][:3]
        one["loss"] = ["logistic", "logistic", "exponential", "linear"][number % 4]
        training = trainings[number % len(trainings)]
        number += 1
        case = case_of(one)
        extent, resolution = float([2, 4, 8][number % 3]), 24
        found = basin_map(
            case.tokens,
            case.head,
            optimizer_of(training),
            parameterization="p",
            loss=one["loss"],
            extent=extent,
            resolution=resolution,
            steps=500,
            most_steps=4000,
        )
        out.append(
            {
                "problem": one,
                "training": training,
                "extent": extent,
                "resolution": resolution,
                "steps": 500,
                "most": 4000,
                "selections": np.asarray(found.data["token"].values)[..., 0].tolist(),
                "basin": found.data["basin"].values.tolist(),
            }
        )
        print(
            "basins",
            len(out),
            {
                k: int((found.data["basin"].values == k).sum())
                for k in np.unique(found.data["basin"].values)
            },
            flush=True,
        )
    return out


KEPT = {"gradients": 6, "margin": 3, "paths": 2}
"""Every which one is kept with the source."""
PARTS = {"gradients": gradients, "margin": margin, "local": local, "paths": paths, "basins": basins}


def main() -> None:
    """Writes the parts."""
    warnings.filterwarnings("ignore")
    whole = HERE.parent / "build" / "reference"
    whole.mkdir(parents=True, exist_ok=True)
    wanted = [name for name in sys.argv[1:] if not name.startswith("--")] or list(PARTS)
    for name in wanted:
        path = whole / f"{name}.json"
        if SMALL:
            kept = json.loads(path.read_text(), parse_constant=float)[:: KEPT.get(name, 1)]
            (HERE / "reference").mkdir(exist_ok=True)
            packed = gzip.compress(as_text(kept).encode(), mtime=0)
            (HERE / "reference" / f"{name}.json.gz").write_bytes(packed)
            print(name, len(kept), f"{len(packed) / 1000:.0f} kB")
            continue
        found = PARTS[name]()
        path.write_text(as_text(found))
        print(name, len(found), flush=True)


def as_text(found: list[dict[str, Any]]) -> str:
    """JSON has no infinity, but a number beyond floating point reads as one."""
    text = json.dumps(found, separators=(",", ":"))
    return text.replace("Infinity", "1e999").replace("NaN", "null")


if __name__ == "__main__":
    main()
