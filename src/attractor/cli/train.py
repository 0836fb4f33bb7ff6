"""``attractor train``: training alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attractor.cli.inputs import layout_help, need_head, read_tokens
from attractor.cli.options import (
    OPTIMIZER_HELP,
    Json,
    OptionalLearningRate,
    Quiet,
    Seed,
    Seeds,
    Steps,
    TokenFile,
)
from attractor.cli.session import session
from attractor.errors import InvalidInputError
from attractor.storage import check_writable
from attractor.training import Optimizer
from attractor.training import train as train_tokens

HELP = layout_help("Train by any optimizer and save the run.")


def train(
    file: TokenFile,
    out: Annotated[Path, typer.Option("--out", help="NetCDF file for the run.")] = Path("run.nc"),
    optimizer: Annotated[
        str, typer.Option(help=f"The optimizer. {OPTIMIZER_HELP}.")
    ] = "normalized gradient descent",
    lr: OptionalLearningRate = None,
    parameterization: Annotated[
        str,
        typer.Option(help="What is trained: W, its factors KQ, a prompt p, or (v, W) and so on."),
    ] = "W",
    loss: Annotated[
        str, typer.Option(help="The loss: logistic, exponential, linear, squared.")
    ] = "logistic",
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Sequences in a step; default: all.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Folder to keep work in; the same command goes on from there."),
    ] = None,
    steps: Steps = 5000,
    seeds: Seeds = 10,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Trains and saves the run."""
    with session("train", as_json=as_json, quiet=quiet) as current:
        from attractor.analysis.bias import load_method

        check_writable("out", out)
        method = load_method(optimizer, learning_rate=lr, parameterization=parameterization)
        if not isinstance(method.optimizer, Optimizer):
            raise InvalidInputError(
                "optimizer",
                f"{optimizer} is a PyTorch optimizer",
                "Give one of optax; `attractor matrix` takes PyTorch optimizers",
            )
        loaded = read_tokens(file, loss)
        trajectory = train_tokens(
            loaded.tokens,
            need_head(loaded, file),
            method.optimizer,
            steps=steps,
            seeds=seeds,
            seed=seed,
            loss=loss,
            parameterization=method.layer,
            batch_size=batch_size,
            checkpoint=checkpoint,
            progress=current.progress,
        )
        trajectory.save(out)
        final = trajectory.data["loss"].isel(step=-1)
        statuses = trajectory.data["status"].values
        current.result(
            run=str(out.absolute()),
            optimizer=method.name,
            reads=method.reads,
            geometry=trajectory.geometry,
            trials=int(statuses.size),
            steps=steps,
            final_loss={"median": float(final.median()), "largest": float(final.max())},
        )
        current.say(str(trajectory), f"Gradients: {method.reads}", f"Run: {out.absolute()}")
        current.say(f"Next: attractor verify {out}")
