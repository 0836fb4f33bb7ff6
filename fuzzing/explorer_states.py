"""States of the explorer as a stranger may write them: nothing runs, and nothing takes long.

``python -m fuzzing.explorer_states --count 10000 --seed 0 --out FOLDER`` gives Chromium so many of
them, in links, in files and as what a notebook sends, on a page that forbids nothing. Each must be
shown or refused in words, within a second; no script of theirs may run, no markup or attribute of
theirs may be on the page; the lines of Python of what is shown hold nothing but literals and calls
of the library; and Python must say the same of every state as the page.
"""

from __future__ import annotations

import argparse
import ast
import collections
import copy
import dataclasses
import functools
import json
import shutil
import sys
import urllib.parse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from attractor.explorer import check_state, scene_named, scene_names, state_of
from attractor.explorer.explorer import script
from attractor.support.errors import InvalidInputError
from fuzzing.mutations import VALUES, every_place

KINDS = ("link", "link", "link", "link", "file", "notebook", "notebook", "answer")
"""How states come, by how often."""
MILLISECONDS = 1000
"""Of the clock or of the processor, whichever are fewer: others may use the machine, too."""

_RUNS = "canary()"
_MARKUP: list[Any] = [
    [["img", {"src": "x", "onerror": _RUNS}]],
    [["script", {}, _RUNS]],
    [["script", {"text": _RUNS}]],
    [["svg", {"onload": _RUNS}, [["script", {}, _RUNS]]]],
    [["iframe", {"srcdoc": f"<script>parent.{_RUNS}</script>"}]],
    [["iframe", {"src": f"javascript:parent.{_RUNS}"}]],
    [["details", {"open": True, "ontoggle": _RUNS}]],
    [["style", {}, "* { background: url(https://example.org/x) }"]],
    [["a", {"href": f"javascript:{_RUNS}", "autofocus": True, "onfocus": _RUNS, "tabindex": 0}]],
    f"<img src=x onerror={_RUNS}>",
    f"</script><script>{_RUNS}</script>",
    f'"><svg onload={_RUNS}>',
    f"javascript:{_RUNS}",
    f"'); {_RUNS}; ('",
    f"${{{_RUNS}}}",
    "url(https://example.org/x)",
]
_CODE: list[Any] = [
    '0, **__import__("os").system("id") or {}',
    '0) or __import__("os").system("id") or (0',
    "0.1\nimport os\nos.system('id')\n#",
    "adam(0.1), __import__('os')",
    '"); import os; print("',
    "l_(__import__('os').system('id'))",
    "l_1.5)\nimport os#",
    ["0", "__import__('os')"],
]
_OBJECTS: list[Any] = [
    {"polluted": 1},
    {"__proto__": {"polluted": 1}},
    {"constructor": {"prototype": {"polluted": 1}}},
    {"length": 10**9},
    {"length": 3, "0": 1, "1": 2, "2": 3},
    {"toString": 1, "valueOf": 1},
    {"toJSON": "x", "then": "x"},
]
_NUMBERS: list[Any] = [
    1e308, -1e308, 1e100, -1e100, 1.1e100, 1e99, 1e50, 5e-324, -5e-324, 1e-300, 0, -0.0, -1, 1e9,
    2**53, 1e21, 1.0000001, 1 - 2**-53, 100_000, 100_001, 239, 240, 0.5, float("inf"),
]  # fmt: skip
_KEYS = ["__proto__", "constructor", "prototype", "toString", "length", "0", "", "onload", "key"]
_CHANGES = [
    "keys.length=1e9", "keys.0.length=4294967295", "start.length=0", "title.length=9",
    "__proto__.polluted=1", "constructor.prototype.polluted=1", "keys.__proto__.polluted=1",
    "__proto__={%22polluted%22:1}", "keys.0.__proto__=[]", "trainings.0.__proto__.polluted=1",
    "hasOwnProperty=1", "toString=1", "keys.map=1", "keys.0.0.push='x", "title.0='x", "keys.-1=[]",
    "keys.0.1e1=[]", "keys.99=[]", "keys.0=", "keys=", "version=", "=", "", "&&&", "%E0%A4%A=1",
    "title=%FF", "keys=[[[", "keys=1,2,", "start=1e999,0", "start=NaN,0", "start=--1,.e.", "x=y=z",
    "steps='5", "steps=5.0", "steps=1e5", "steps=[5]", "trainings.1=null", "theme='__proto__",
    "trainings.0.weight_decay='0, **__import__(%22os%22).system(%22id%22) or {}",
    "title=[[%22img%22,{%22src%22:%22x%22,%22onerror%22:%22canary()%22}]]",
]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Shared:
    """What a stranger hands over.

    Attributes:
        kind: How: "link", "file", "notebook" or "answer", which is what Python says of a state.
        text: The part of a link after "#", or JSON.
    """

    kind: str
    text: str


def shared(number: int, seed: int) -> Shared:
    """The state of a number; the same one whenever asked."""
    rng = np.random.default_rng([seed, number])
    kind = KINDS[number % len(KINDS)]
    if kind == "link":
        return Shared(kind, _link(rng))
    if kind == "answer":
        return Shared(kind, _json(_mutated(_ANSWER, rng), rng))
    small, large = bases()
    base = _pick(rng, large if rng.random() < 0.04 else small)
    return Shared(kind, _json(_mutated(base, rng), rng))


def page_source(code: str | None = None) -> str:
    """A page that has an explorer, a canary, and no policy that would forbid anything."""
    harness = Path(__file__).with_suffix(".js").read_text("utf-8")
    code = (script() if code is None else code).replace("</script", "<\\/script")
    return (
        f"<!doctype html><meta charset=utf-8><link rel=icon href=data:,><script>{harness}</script>"
        "<div data-attractor-explorer=two-basins data-address></div>"
        f"<script id=code>{code}</script>"
    )


@functools.cache
def bases() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """States that are fine: scenes and tokens in more dimensions; and as much as a page takes."""
    import attractor as at

    found = [scene_named(name) for name in scene_names()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokens, head = at.datasets.unit_tokens(2, 3, 5, seeds=[2])
        found.append(state_of(tokens, head, parameterization="p", steps=60))
        found.append(state_of(tokens, head, "spectral descent", steps=60))
    return found, list(_large())


def _large() -> Iterator[dict[str, Any]]:
    """The most tokens and steps that a page takes, at random, on a circle, and with ties."""
    rng = np.random.default_rng(0)
    base = scene_named("two-basins") | {"steps": 2000}
    for sequences, tokens in ((1, 240), (24, 10), (2, 120), (6, 40), (24, 2)):
        keys = rng.normal(size=(sequences, tokens, 2))
        scores = rng.normal(size=(sequences, tokens))
        turn = 2 * np.pi * np.arange(tokens) / tokens
        circle = np.stack([np.cos(turn), np.sin(turn)], -1) + np.zeros((sequences, 1, 1))
        tied = np.minimum(scores, np.sort(scores)[:, -2:-1])
        for own, said in ((keys, scores), (circle, scores), (keys, tied), (circle, 0 * scores)):
            trainings = [{"optimizer": name, "learning_rate": 0.1} for name in
                         ("sign_descent", "normalized_gradient_descent")]  # fmt: skip
            state = base | {"keys": own.tolist(), "scores": said.tolist(), "trainings": trainings}
            yield state
            queries = rng.normal(size=(sequences, 2)).tolist()
            matrix = {"parameterization": "W", "start": [0, 0, 0, 0], "queries": queries}
            yield state | matrix | {"norm": str(rng.choice(["l_inf", "nuclear", "l_1.01", "l_40"]))}
            yield state | {"norm": str(rng.choice(["l_inf", "l_1", "l_1.01", "l_9999"]))}
        labels = [(-1) ** i for i in range(sequences)]
        joint = {"parameterization": "pv", "labels": labels}
        yield {k: v for k, v in state.items() if k != "scores"} | joint | {"start": [0, 0, 1, 1]}


_ANSWER = {
    "state": "", "status": "solved", "value": 0.9, "gap": 1e-15, "ends": [[3.0, 4.0]],
    "milliseconds": 12.5,
}  # fmt: skip


def _pick(rng: np.random.Generator, choices: Any) -> Any:
    return copy.deepcopy(choices[int(rng.integers(len(choices)))])


def _value(rng: np.random.Generator) -> Any:
    """Something that may stand anywhere, and seldom should."""
    kind = int(rng.integers(7))
    if kind == 0:
        return [[_pick(rng, _NUMBERS)] * int(10 ** rng.uniform(0, 3.5))] * int(rng.integers(1, 30))
    if kind == 1:
        return "x" * int(10 ** rng.uniform(0, 5)) + str(_pick(rng, ["", "\0", "\u202e", "\ud800"]))
    return _pick(rng, (_MARKUP, _CODE, _OBJECTS, _NUMBERS, VALUES)[kind - 2])


def _mutated(state: dict[str, Any], rng: np.random.Generator) -> Any:
    """A state with up to three things changed; one in ten is left as it is."""
    whole = [copy.deepcopy(state)]
    for _ in range(_pick(rng, [0, 1, 1, 1, 1, 1, 1, 2, 2, 3])):
        places = every_place(whole)
        if not places:
            break
        holder, key = _pick_place(rng, places)
        kind = int(rng.integers(10))
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, dict):
            holder[_pick(rng, _KEYS)] = _value(rng)
        elif kind == 2:
            inner, name = _pick_place(rng, places)
            holder[key] = copy.deepcopy(inner[name])
        elif kind == 3 and isinstance(holder, list):
            holder.extend(copy.deepcopy(holder[-1:]) * int(10 ** rng.uniform(0, 4)))
        elif kind < 7 and isinstance(holder[key], int | float):
            holder[key] = _pick(rng, _NUMBERS)
        else:
            holder[key] = _value(rng)
    return whole[0] if whole else None


def _pick_place(rng: np.random.Generator, places: list[Any]) -> Any:
    """A place; those near the top as often as the many numbers at the bottom."""
    if rng.random() < 0.5:
        places = [one for one in places if isinstance(one[0], dict)] or places
    return places[int(rng.integers(len(places)))]


def _json(value: Any, rng: np.random.Generator) -> str:
    text = json.dumps(value)
    if rng.random() < 0.02:
        text = text[: int(rng.integers(len(text) + 1))]
    return text.replace("-Infinity", "-1e999").replace("Infinity", "1e999").replace("NaN", "null")


def _link(rng: np.random.Generator) -> str:
    """The address of a scene with up to four changes."""
    strange = rng.random() < 0.05
    name = _pick(rng, ["nowhere", "__proto__", "%"] if strange else [*scene_names(), ""])
    known = scene_named(name) if name in scene_names() else scene_named("two-basins")
    changes = []
    for _ in range(_pick(rng, [0, 1, 1, 1, 2, 2, 3, 4])):
        if rng.random() < 0.25:
            changes.append(_pick(rng, _CHANGES))
            continue
        path, inside = [], known
        while isinstance(inside, dict | list) and inside and (not path or rng.random() < 0.7):
            keys = list(inside) if isinstance(inside, dict) else range(len(inside))
            key = keys[int(rng.integers(len(keys)))]
            path.append(str(key))
            inside = inside[key]
        if rng.random() < 0.15:
            path[-1] = _pick(rng, [*_KEYS, "p", "weight_decay", "norm", "selection", "point"])
        value = _pick(rng, _NUMBERS) if rng.random() < 0.4 else _value(rng)
        if rng.random() < 0.35:
            value = inside if isinstance(inside, str | list) else float(rng.normal())
        written = f"'{value}" if isinstance(value, str) else _json(value, rng)
        coded = urllib.parse.quote(written, safe=",'", errors="replace")
        changes.append(f"{'.'.join(path)}={coded}"[:200_000])
    return "&".join([f"explorer:{name}", *changes])


_LIBRARY = {
    "np.array", "np.ones", "np.arange", "at.Tokens", "at.LinearHead", "at.optimal_tokens", "print",
    "at.Selection.from_index", "at.solve", "at.solve_several", "at.label_problem", "at.Frobenius",
    "at.relaxed_problem", "at.label_support", "at.MarginProblem.from_selection", "at.Lp",
    "at.Spectral", "at.Nuclear", "at.train", "at.gradient_descent", "at.mirror_descent",
    "at.normalized_gradient_descent", "at.sign_descent", "at.greedy_coordinate_descent",
    "at.spectral_descent",
}  # fmt: skip
_WORDS = ("p", "W", "KQ", "(v, p)", "plain", "exponential", "linear", "K", "Q")
_PLAIN = (
    ast.Module, ast.Import, ast.alias, ast.Assign, ast.Expr, ast.Call, ast.keyword, ast.Name,
    ast.Attribute, ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.UnaryOp, ast.USub, ast.Compare,
    ast.Lt, ast.BinOp, ast.MatMult, ast.Subscript, ast.Load, ast.Store,
)  # fmt: skip


def surprises(lines: str) -> list[str]:
    """What lines of Python hold besides literals and calls of the library."""
    found = []
    for node in ast.walk(ast.parse(lines)):
        if not isinstance(node, _PLAIN):
            found.append(type(node).__name__)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) not in _LIBRARY:
            found.append(ast.unparse(node.func))
        elif isinstance(node, ast.Import) and ast.unparse(node) not in (
            "import numpy as np", "import attractor as at"
        ):  # fmt: skip
            found.append(ast.unparse(node))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value not in _WORDS:
                found.append(repr(node.value))
    return found


def judge(one: Shared, found: dict[str, Any]) -> list[str]:
    """What is wrong with what a page did."""
    wrong = [f"{what}: {found[what]}" for what in ("ran", "strange", "errors") if found[what]]
    if found["milliseconds"] > MILLISECONDS:
        wrong.append(f"it took {found['milliseconds']:.0f} ms")
    if not found["shown"] and len(found["why"].split()) < 3:
        wrong.append(f"it is refused without a reason: {found['why']!r}")
    if found["lines"]:
        wrong += [f"Python: {surprise}" for surprise in surprises(found["lines"])]
    if one.kind in ("file", "notebook") and one.text:  # without a state it shows a scene of its own
        why = refused_by_python(one.text)
        if bool(why) == found["shown"]:
            wrong.append(f"Python says {why or 'that it is fine'}, the page {found['why']!r}")
    elif one.kind == "link" and found["state"] and (why := refused_by_python(found["state"])):
        wrong.append(f"the page shows what Python refuses: {why}")
    return wrong


def refused_by_python(text: str) -> str:
    """Why Python refuses a state; empty where it does not."""
    try:
        check_state(json.loads(text))
    except (InvalidInputError, json.JSONDecodeError) as error:
        return str(error)
    return ""


class Visited:
    """A page in Chromium that is given one state after another."""

    def __init__(self, browser: Any, folder: Path, code: str | None = None) -> None:
        self._file = folder / "fuzzed.html"
        self._file.write_text(page_source(code), "utf-8")
        self.page = browser.new_context(accept_downloads=False).new_page()
        self._errors: list[str] = []
        self.page.on("pageerror", lambda error: self._errors.append(str(error)))
        self.page.on("console", self._said)
        self.page.on("dialog", lambda dialog: self._errors.append(dialog.message))
        self.page.route("**/*", self._asked)
        self.page.goto(self._file.as_uri())
        self._metrics = self.page.context.new_cdp_session(self.page)
        self._metrics.send("Performance.enable", {"timeDomain": "threadTicks"})

    def _processor(self) -> float:
        """Milliseconds of the processor that the page has used."""
        metrics = self._metrics.send("Performance.getMetrics")["metrics"]
        return 1000 * next(one["value"] for one in metrics if one["name"] == "TaskDuration")

    def _said(self, message: Any) -> None:
        if message.type == "error":
            self._errors.append(message.text)

    def _asked(self, route: Any) -> None:
        if route.request.url.startswith(("file:", "data:", "blob:")):
            return route.continue_()
        self._errors.append(f"asked for {route.request.url}")
        return route.abort()

    def give(self, one: Shared, fresh: bool = False) -> dict[str, Any]:
        """What the page did with a state; a fresh page is one that is opened by the link."""
        self._errors.clear()
        before = self._processor()
        if fresh:  # as by a link from elsewhere, and with basins, which take long
            self.page.goto(f"{self._file.as_uri()}?basins#{one.text if one.kind == 'link' else ''}")
        clock = self.page.evaluate("([kind, text]) => give(kind, text)", [one.kind, one.text])
        processor = self._processor() - before
        found = self.page.evaluate("looked()")
        if fresh:
            self.page.goto(self._file.as_uri())
        return found | {"milliseconds": min(clock, processor), "errors": [*self._errors]}


def main() -> None:
    """Gives Chromium as many states as asked for, and writes what was wrong."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("build/fuzz-explorer"))
    parser.add_argument("--script", type=Path, help="another script of the explorer")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    counts, failures, slowest = collections.Counter(), [], (0.0, -1)
    with sync_playwright() as running:
        path = shutil.which("chromium") or shutil.which("google-chrome")
        browser = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        code = given.script and given.script.read_text("utf-8")
        visited = Visited(browser, given.out, code)
        for number in range(given.first, given.first + given.count):
            one = shared(number, given.seed)
            (given.out / "now.json").write_text(json.dumps([number, dataclasses.asdict(one)]))
            found = visited.give(one, fresh=number % 50 == 0)
            counts[one.kind, "shown" if found["shown"] else "refused"] += 1
            counts["lines of Python"] += bool(found["lines"])
            slowest = max(slowest, (found["milliseconds"], number))
            if wrong := judge(one, found):
                failures.append({"number": number, **dataclasses.asdict(one), "wrong": wrong})
                print(number, one.kind, one.text[:300], wrong, flush=True)
            if number % 500 == 499:
                print(number + 1, dict(counts), "slowest", slowest, flush=True)
        browser.close()
    (given.out / "failures.json").write_text(json.dumps(failures, indent=1))
    print(dict(counts), f"slowest {slowest[0]:.0f} ms, number {slowest[1]};",
          f"{len(failures)} failures")  # fmt: skip
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
