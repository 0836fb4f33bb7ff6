"""``attractor train``: training alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attractor.cli.inputs import layout_help, need_head, read_tokens
from attractor.cli.options import Json, LearningRate, Quiet, Seed, Seeds, Steps, TokenFile
from attractor.cli.session import session
from attractor.storage import check_writable
from attractor.training import normalized_gradient_descent
from attractor.training import train as train_tokens

HELP = layout_help("Train by normalized gradient descent and save the run.")


def train(
    file: TokenFile,
    out: Annotated[Path, typer.Option("--out", help="NetCDF file for the run.")] = Path("run.nc"),
    steps: Steps = 5000,
    lr: LearningRate = 0.1,
    seeds: Seeds = 10,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Trains and saves the run."""
    with session("train", as_json=as_json, quiet=quiet) as current:
        check_writable("out", out)
        loaded = read_tokens(file)
        trajectory = train_tokens(
            loaded.tokens,
            need_head(loaded, file),
            normalized_gradient_descent(lr),
            steps=steps,
            seeds=seeds,
            seed=seed,
            progress=current.progress,
        )
        trajectory.save(out)
        loss = trajectory.data["loss"].isel(step=-1)
        statuses = trajectory.data["status"].values
        current.result(
            run=str(out.absolute()),
            trials=int(statuses.size),
            steps=steps,
            final_loss={"median": float(loss.median()), "largest": float(loss.max())},
        )
        current.say(str(trajectory), f"Run: {out.absolute()}", f"Next: attractor verify {out}")
