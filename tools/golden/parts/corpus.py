"""Next-token prediction: what corpora hide, margin problems, training, cycles, decoders."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tools.golden.collect import command, of

Results = Iterator[tuple[str, Callable[[], Any]]]
SOLUTION = "W multipliers status value gap kkt_residual rank"


@functools.cache
def corpora() -> dict[str, Any]:
    """Sentences that are realizable, some that are not, and some drawn."""
    from attractor.corpora import Corpus

    drawn = np.random.default_rng(0).integers(0, 6, size=(12, 4)).astype(str)
    return {
        "simple": Corpus.from_sentences([list("SVOP"), list("VOP"), list("OPP"), list("PSV")]),
        "drawn": Corpus.from_sentences(drawn.tolist()),
    }


def structures() -> Results:
    """Collocation, orders, graphs, the part that is realizable."""
    from attractor import corpora as nt

    for name, corpus in corpora().items():
        yield f"{name}, graphs", lambda corpus=corpus: nt.token_priority_graphs(corpus).edges
        yield f"{name}, samples", lambda corpus=corpus: nt.distinct_samples(corpus)
        yield (
            f"{name}, part",
            lambda corpus=corpus: of(nt.realizable_part(corpus), "samples share removed"),
        )
        structure = functools.partial(nt.corpus_structure, corpus)
        yield (
            f"{name}, structure",
            lambda structure=structure: [
                of(structure().collocation, "next_token conflicts"),
                structure().orders.edges,
                [of(one, "name met share offending") for one in structure().assumptions],
            ],
        )
    for make in ("order_first_corpus", "rolled_out_corpus"):
        yield make, lambda make=make: of(getattr(nt, make)(8).corpus, "tokens starts counts")


def training() -> Results:
    """The margin problems of both layers, and training in two stages."""
    import attractor as at
    from attractor import corpora as nt

    corpus = corpora()["simple"]
    found = functools.partial(nt.collocation, corpus)
    orders = lambda: nt.partial_orders(corpus, found())  # noqa: E731
    yield "feed-forward", lambda: of(at.solve(nt.feed_forward_problem(found())), SOLUTION)
    yield "attention", lambda: of(at.solve(nt.attention_problem(orders())), SOLUTION)
    run = functools.cache(lambda: nt.train_two_stages(corpus, steps=(100, 100)))
    yield "two-stages", lambda: [run().feed_forward.data, run().attention.data]
    yield "measures", lambda: nt.measure_two_stages(run())


def cycles() -> Results:
    """Labels that conflict: limits of attention, and the path in balls."""
    from attractor.corpora import mechanics

    made = functools.cache(
        lambda: mechanics.conflicting_corpora(1, vocabulary=4, dimension=5, length=3, samples=3)
    )
    limits = functools.cache(
        lambda: mechanics.attention_limits(made().corpora[0], made().embeddings[0])
    )
    yield "corpora", lambda: [made().embeddings, made().corpora[0].tokens, made().redraws]
    yield "limits", lambda: [limits().direction.W, limits().subspace.basis, limits().finite]
    yield (
        "ball-path",
        lambda: of(
            mechanics.ball_path(limits(), radii=[1.0, 4.0]),
            "W log_excess log_distance log_multiplier",
        ),
    )


def decoders() -> Results:
    """Soft labels and a linear decoder."""
    import attractor as at
    from attractor.corpora import linear

    drawn = functools.cache(
        lambda: linear.random_contexts(contexts=3, dimension=4, classes=3, support=2, seed=1)
    )
    for name in ("compatibility", "separability", "finite_part", "support_space"):
        yield name, lambda name=name: getattr(linear, name)(drawn())
    path = functools.partial(linear.linear_regularization_path, radii=[1.0, 2.0])
    yield "path", lambda: path(drawn()).data
    descent = at.gradient_descent(0.1)
    yield "trained", lambda: linear.train_linear(drawn(), descent, steps=100).data


def commands(stored: Any = None, **_: Any) -> Results:
    """The command, on the stored corpus."""
    train = ("--train", "--steps", 50)
    yield "corpus", functools.partial(command, "corpus", stored / "corpus.txt", *train)


ADAPTERS = {
    "structure": structures, "training": training, "cycles": cycles, "decoder": decoders,
    "command": commands,
}  # fmt: skip
WITH_OPTIONS = {"command"}
