"""Solve, train, compare: a report on your token file."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from attractor import analysis, attention, training
from attractor.cli.command import Command
from attractor.cli.inputs import GIVEN, NAMED, known_beforehand, need_head, read_tokens, select
from attractor.cli.options import (
    Json,
    OptionalLearningRate,
    Quiet,
    Report,
    Seed,
    Seeds,
    SelectedTokens,
    Steps,
    TokenFile,
    recorded,
    report_output,
)
from attractor.cli.plans import Plan, plan
from attractor.cli.predicted import conflict_lines, predict
from attractor.cli.provenance import report_provenance
from attractor.cli.session import ExitCode, session
from attractor.cli.texts import about_tokens
from attractor.cli.verdicts import goes_on, has_direction, most_kept, say_verdict
from attractor.files.token_file import LoadedTokens
from attractor.geometry import Frobenius
from attractor.report.summary import infeasible_count, report_summary
from attractor.report.words import prediction_sentences
from attractor.support.errors import InvalidInputError
from attractor.support.loaded import import_meanwhile
from attractor.support.storage import Input, check_paths, existing_file
from attractor.support.storage.markers import REPORT

if TYPE_CHECKING:
    from attractor.geometry import Geometry


_NOT_BEFOREHAND = (
    "The head is trained, and where it goes decides which tokens attention keeps: the direction is "
    "predicted for the tokens that training reaches."
)


def check(
    file: TokenFile,
    out: Report = None,
    selection: SelectedTokens = None,
    steps: Steps = None,
    lr: OptionalLearningRate = None,
    seeds: Seeds = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predicts, trains, compares and reports."""
    arguments = recorded(locals())
    with session("check", as_json=as_json, quiet=quiet, out=[out]) as current:
        check_paths([report_output("check", out)], [Input("FILE", file)])
        existing_file(file, LoadedTokens.missing)

        loaded = read_tokens(file)
        how = plan(loaded, lr=lr, steps=steps, seeds=seeds)
        geometry = _descended(how) if loaded.head is not None else Frobenius()
        chosen = about = predicted = None
        if known_beforehand(loaded, selection):
            chosen, about = select(loaded, file, selection)
            predicted = predict(loaded, chosen, geometry, progress=current.progress)
            current.say(*prediction_sentences(predicted.solution, about), predicted.sentence)
            current.say_lines(conflict_lines(predicted.solution, loaded.tokens.instance_numbers))
        else:
            need_head(loaded, file)
            current.say(_NOT_BEFOREHAND)
        infeasible = predicted is not None and infeasible_count(predicted.solution) > 0
        verdict = None
        if loaded.head is None:
            current.say(f"{file.name} has no head, so nothing is trained: training needs a loss.")
        else:
            import_meanwhile("matplotlib.backends.backend_svg", "h5netcdf")
            trajectory = training.train(
                loaded.tokens,
                loaded.head,
                how.optimizer,
                steps=how.steps,
                seeds=how.seeds,
                seed=seed,
                initial=loaded.initial,
                parameterization=how.method.layer,
                progress=current.progress,
            )
            given = chosen if about in (NAMED, GIVEN) and not infeasible else None
            reference = "reached at end" if given is None else given
            verdict = analysis.verify(trajectory, selection=reference)
            say_verdict(current, verdict)
            if not infeasible and goes_on(verdict):
                longer = current.again(steps=4 * how.steps)
                current.suggest(longer, "to see whether training gets there")
        numbers = loaded.tokens.instance_numbers
        if infeasible:
            current.exit_code = ExitCode.INFEASIBLE
            kept = None if verdict is None else most_kept(verdict)
            if kept is not None:
                why = "for the direction of tokens that training keeps instead"
                current.suggest(f"attractor solve {shlex.quote(str(file))} --selection {kept}", why)
            elif _is_linear(loaded) and len(numbers) == 1:
                page = f"attractor explore {shlex.quote(str(file))} --out explorer.html"
                current.suggest(page, "a page that shows where attention stays instead")
        elif predicted is None and verdict is not None and not has_direction(verdict):
            current.exit_code = ExitCode.INFEASIBLE
        prediction = None if predicted is None else predicted.solution
        if out is None:
            current.result(**report_summary(prediction, verdict, numbers))
            current.unwritten()
            return
        provenance = report_provenance(
            "check",
            arguments,
            source=loaded,
            seeds=range(seed, seed + how.seeds),
            settings={"optimizer": how.method.name, "steps": how.steps, "seeds": how.seeds},
        )
        from attractor.report import write_report  # draws, and loads what draws

        summary = write_report(
            out,
            prediction=prediction,
            verdict=verdict,
            about="" if predicted is None else f"{about}",
            why=_NOT_BEFOREHAND if predicted is None else predicted.sentence,
            source=f"{file.name}: {loaded.tokens!r}",
            instance_numbers=numbers,
            provenance=provenance,
        )
        current.wrote("report", out / REPORT, **summary)


def _descended(how: Plan) -> Geometry:
    """The norm that training descends, in which its direction is predicted."""
    geometry = how.method.own_norm
    if geometry is None:
        raise InvalidInputError(
            "optimizer",
            f"which norm {how.method.name} descends in {how.method.layer.name} is not known, so "
            "there is no direction to compare the run with",
            "Take another one, or `attractor solve --norm` and `attractor train` apart",
        )
    return geometry


def _is_linear(loaded: LoadedTokens) -> bool:
    return loaded.head is not None and attention.heads.named.is_linear(loaded.head)


COMMAND = Command(
    check,
    "Solve for the direction training must take, train, compare the two; with --out "
    "write a report with pictures.",
    {
        "attractor check tokens.npz": 4,
        "attractor check tokens.npz --steps 20000 --out check-report": 7,
    },
    about_tokens(),
)
