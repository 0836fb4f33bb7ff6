"""All commands: how each is called, what it writes, what its reports record.

A new command, or a new option that takes a path, fails ``test_the_table_is_complete`` until it is
here.
"""

from typing import NamedTuple

from attractor.papers.ledger.packs import all_figures
from attractor.support.storage.markers import AUDIT, CHECKPOINT, REPORT

FIGURE = "large-prompt/gradients"
OF_DATA = next(name for name, figure in all_figures(None).items() if figure.takes)
FILE, REPLACED, HELD, SHARED = "file", "replaced folder", "held folder", "shared folder"


class Command(NamedTuple):
    """How a command is called, and what it does first, once paths are in order."""

    call: tuple  # with the names of paths in braces
    work: str  # what must not be called
    outputs: dict  # path parameters that are written, and as what
    inputs: tuple = ()  # path parameters that are read
    marker: str = REPORT
    reader: str | None = None  # what reads its file; "" where the command does it alone
    run: str = ""  # options of a whole run of seconds, which writes "out"
    records: dict | None = None  # what its report says of its options

    @property
    def reports(self):
        """Whether the command writes a report."""
        return self.outputs.get("out") == REPLACED and self.marker != "sweep.nc"


TABLE = {
    "demo": Command(("--out", "{out}"), "attractor.cli.commands.demo._run", {"out": REPLACED},
        run="--out out",
        records={"seed": 0, "data": False},
    ),
    "check": Command(
        ("{file}", "--out", "{out}"),
        "attractor.cli.commands.check.read_tokens",
        {"out": REPLACED},
        ("file",),
        reader="attractor.files.load_tokens",
        run="tokens.npz --steps 50 --seeds 1 --out out",
        records={
            "selection": None, "steps": None, "lr": None, "seeds": None, "seed": 0, "data": True,
        },
    ),
    "corpus": Command(
        ("{file}", "--train", "--out", "{out}"),
        "attractor.corpora.load_corpus",
        {"out": REPLACED},
        ("file",),
        reader="attractor.corpora.load_corpus",
        run="corpus.txt --train --steps 20 --out out",
        records={
            "context": None, "vocabulary": None, "embedding": None, "train": False, "steps": 900,
            "seed": 0, "data": True,
        },
    ),
    "audit": Command(
        ("{model}", "{texts}", "--checkpoints", "{checkpoints}", "--store", "{store}", "--out",
         "{out}"),
        "attractor.heads.captured.captured_file.load_captured",
        {"out": REPLACED, "store": HELD}, ("model", "texts", "checkpoints"), AUDIT,
        records={
            "layers": "0,3-5", "heads": None, "draws": 99, "alpha": 0.05, "training_texts": True,
            "norm": ["nuclear"], "checkpoints": 0, "control": False, "sink_positions": None,
            "seed": 0, "data": True,
        },
    ),
    "prompt-length": Command(
        ("{file}", "--out", "{out}"),
        "attractor.prompts.load_head",
        {"out": REPLACED},
        ("file",),
        reader="attractor.prompts.load_head",
        run="head.npz --queries 20 --out out",
        records={"error": 0.1, "length": None, "queries": 1000, "seed": 0, "data": True},
    ),
    "solve": Command(
        ("{file}", "--out", "{out}", "--certificate", "{certificate}"),
        "attractor.cli.commands.solve.read_tokens",
        {"out": FILE, "certificate": FILE},
        ("file",),
        reader="attractor.files.load_tokens",
    ),
    "train": Command(
        ("{file}", "--out", "{out}", "--checkpoint", "{checkpoint}"),
        "attractor.cli.commands.train.read_tokens",
        {"out": FILE, "checkpoint": HELD},
        ("file",),
        CHECKPOINT,
        reader="attractor.files.load_tokens",
        run="tokens.npz --steps 4000 --seeds 4 --checkpoint kept --out out.nc",
    ),
    "verify": Command(
        ("{run}", "--out", "{out}"),
        "attractor.training.Trajectory.load",
        {"out": REPLACED},
        ("run",),
        reader="",
        records={"geometry": "l_1.5", "data": True},
    ),
    "matrix": Command(
        ("--out", "{out}"), "attractor.datasets.unit_tokens", {"out": REPLACED},
        run="--optimizer gd --lr 0.1 --data-sets 1 --steps 30 --out out",
        records={
            "optimizer": ["ngd", "md:p=1.5"], "lr": [0.1], "norm": None, "parameterization": "W",
            "size": "quick", "data_sets": None, "steps": None, "matched": False, "seed": 0,
            "data": False,
        },
    ),
    "basins": Command(
        ("{file}", "--out", "{out}"),
        "attractor.cli.inputs.read_tokens",
        {"out": REPLACED},
        ("file",),
        "shares.nc",
        reader="attractor.files.load_tokens",
        run="tokens.npz --starts 4 --steps 50 --out out",
        records={
            "optimizer": None, "lr": None, "parameterization": None, "loss": "logistic",
            "steps": None, "starts": 1000, "scale": None, "with_map": False, "extent": 3.0,
            "resolution": 100, "data_set": None, "seed": 0, "data": True,
        },
    ),
    "explore": Command(
        ("{file}", "--out", "{out}"), "attractor.cli.inputs.read_tokens", {"out": FILE}, ("file",),
        reader="attractor.files.load_tokens",
    ),
    "in-context": Command(
        ("--lengths", "8,inf", "--out", "{out}", "--checkpoint", "{checkpoint}"),
        "attractor.prompts.regression.runs.train_at_lengths",
        {"out": REPLACED, "checkpoint": SHARED},
        run="--dimension 2 --lengths 8,inf --steps 50 --batch 4 --checkpoint kept --out out",
        records={
            "dimension": 5, "correlation": 0.5, "lengths": "64,inf", "attention": None,
            "data_path": None, "initialization": None, "parameterization": None, "scale": None,
            "steps": None, "lr": None, "batch": 128, "draw": "auto", "experiment": None, "seeds": 1,
            "seed": None,
        },
    ),
    "claims": Command(
        ("--all", "--data", "{data}", "--out", "{out}"),
        "attractor.files.load",
        {"out": REPLACED},
        ("data",),
        reader="attractor.files.load",
        run="transformers-as-svms/rank --out out",
    ),
    "figures": Command(
        (OF_DATA, "--data", "{data}", "--out", "{out}"),
        "attractor.papers.drawing.draw",
        {"out": SHARED},
        ("data",),
        run="large-prompt/gradients --out out",
    ),
    "compare": Command(
        ("{first}", "{second}", "--out", "{out}"), "attractor.maps.paired",
        {"out": REPLACED}, ("first", "second"),
        records={"seed": 0, "data": True},
    ),
    "reproduce": Command(
        ("{file}", "--data", "{data}", "--checkpoints", "{checkpoints}"), "", {},
        ("file", "data", "checkpoints"),
        reader="attractor.results.provenance.read_provenance",
    ),
    "sweep run": Command(
        ("{plan}", "--store", "{store}"), "attractor.maps.sweeps.plan.load_plan",
        {"store": HELD}, ("plan",), "zarr.json"),
    "sweep status": Command(("{store}",), "", {}, ("store",)),
    "sweep check": Command(("{store}",), "", {}, ("store",)),
    "sweep draw": Command(
        ("{store}", "--x", "n", "--of", "margin", "--out", "{out}"),
        "attractor.maps.sweeps.storage.arrays.open_sweep",
        {"out": REPLACED},
        ("store",),
        "sweep.nc",
        records={
            "x": "n", "of": "feasible", "y": "T", "lines": None, "panels": None, "at": ["d=4"],
            "along": None, "levels": "0.1,0.5", "side": "below", "transition": "log",
            "confidence": 0.95, "seed": 0, "data": True,
        },
    ),
    "example heads": Command(
        ("{path}", "--out", "{out}"), "attractor.heads.example.planted_heads",
        {"path": FILE, "out": SHARED}),
    "example sweep": Command(
        ("{path}", "--out", "{out}"), "attractor.maps.sweeps.plan.example_plan",
        {"path": FILE, "out": SHARED}),
    "example tokens": Command(
        ("{path}", "--out", "{out}"), "attractor.datasets.unit_tokens",
        {"path": FILE, "out": SHARED}),
    "example corpus": Command(
        ("{path}", "--docstrings", "--out", "{out}"), "attractor.datasets.docstring_sentences",
        {"path": FILE, "out": SHARED}),
    "example head": Command(
        ("{path}", "--out", "{out}"), "attractor.prompts.random_head",
        {"path": FILE, "out": SHARED}),
}  # fmt: skip
