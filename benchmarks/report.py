"""Runs every benchmark and writes RESULTS.md beside this file."""

from __future__ import annotations

import datetime
from pathlib import Path

from attractor.support.storage import atomic_file
from benchmarks import (
    corpus_structure,
    exact_gradient,
    frobenius_methods,
    geometries,
    growth,
    in_context,
    large_problems,
    many_constraints,
    many_trials,
    monitor,
    next_token_training,
    optimizers,
    paper_suites,
    prompt_error,
    throughput,
    torch_step,
    training,
    training_growth,
)

RESULTS = Path(__file__).parent / "RESULTS.md"


def main() -> None:
    """Measures and writes."""
    modules = (
        training,
        exact_gradient,
        many_trials,
        training_growth,
        optimizers,
        paper_suites,
        next_token_training,
        corpus_structure,
        in_context,
        prompt_error,
        torch_step,
        monitor,
        throughput,
        geometries,
        large_problems,
        many_constraints,
        growth,
        frobenius_methods,
    )
    sections = [module.section() for module in modules]
    head = (
        "# Benchmark results\n\n"
        f"Written by `make benchmark` on {datetime.date.today()}. Each section names its machine, "
        "versions and settings; both sides of a ratio ran in the same session, in turn. Ratios are "
        "medians, with the smallest and the largest beside them.\n"
    )
    with atomic_file(RESULTS) as temporary:
        temporary.write_text("\n".join([head, *(section.rstrip() + "\n" for section in sections)]))


if __name__ == "__main__":
    main()
