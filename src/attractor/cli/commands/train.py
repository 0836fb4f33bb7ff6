"""Train by any optimizer and save the run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from attractor import training
from attractor.cli.command import Command
from attractor.cli.inputs import need_head, read_tokens
from attractor.cli.options import (
    Json,
    LossName,
    OptimizerName,
    OptionalLearningRate,
    Quiet,
    Seed,
    Seeds,
    Steps,
    TokenFile,
)
from attractor.cli.plans import plan
from attractor.cli.session import session
from attractor.cli.texts import about_tokens
from attractor.cli.verdicts import norm_option
from attractor.files.token_file import LoadedTokens
from attractor.support.storage import Input, OutputFile, OutputFolder, check_paths, existing_file
from attractor.support.storage.markers import CHECKPOINT


def train(
    file: TokenFile,
    out: Annotated[Path, typer.Option("--out", help="NetCDF file for the run.")] = Path("run.nc"),
    optimizer: OptimizerName = None,
    lr: OptionalLearningRate = None,
    parameterization: Annotated[
        str | None,
        typer.Option(
            help="What is trained: W, its factors KQ, a prompt p, or (v, W) and so on; 4 x W are "
            "four attention heads; default: what the file says, or W."
        ),
    ] = None,
    loss: LossName = "logistic",
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Sequences in a step; default: all.")
    ] = None,
    batch_order: Annotated[
        str,
        typer.Option(
            help="Which sequences a step sees: random, shuffled in every epoch, or cyclic."
        ),
    ] = "random",
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Folder to keep work in; the same command goes on from there."),
    ] = None,
    steps: Steps = None,
    seeds: Seeds = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Trains and saves the run."""
    with session("train", as_json=as_json, quiet=quiet) as current:
        kept = OutputFolder("checkpoint", checkpoint, CHECKPOINT)
        check_paths([OutputFile("out", out, ".nc"), kept], [Input("FILE", file)])
        existing_file(file, LoadedTokens.missing)

        loaded = read_tokens(file, loss, parameterization)
        how = plan(loaded, optimizer=optimizer, lr=lr, steps=steps, seeds=seeds)
        trajectory = training.train(
            loaded.tokens,
            need_head(loaded, file),
            how.optimizer,
            steps=how.steps,
            seeds=how.seeds,
            seed=seed,
            initial=loaded.initial,
            loss=loss,
            parameterization=how.method.layer,
            batch_size=batch_size,
            batch_order=batch_order,
            checkpoint=checkpoint,
            progress=current.progress,
        )
        trajectory.save(out)
        final = trajectory.data["loss"].isel(step=-1)
        statuses = trajectory.data["status"].values
        current.show(trajectory)
        current.say(f"Gradients: {how.method.reads}")
        current.wrote(
            "run",
            out,
            optimizer=how.method.name,
            reads=how.method.reads,
            geometry=trajectory.geometry,
            trials=int(statuses.size),
            steps=how.steps,
            final_loss={"median": float(final.median()), "largest": float(final.max())},
        )
        norm = norm_option(how.method.own_norm)
        current.suggest(f"attractor verify {shlex.quote(str(out))}{norm}")


COMMAND = Command(
    train,
    "Train by any optimizer and save the run.",
    {
        "attractor train tokens.npz --optimizer md:p=1.75 --out run.nc": 3,
    },
    about_tokens(),
)
