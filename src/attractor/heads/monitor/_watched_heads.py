"""Heads of a model of transformers, read as an audit reads them; a callback of its Trainer."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from attractor.heads import Captured, CaptureStatus
from attractor.heads.captured.rows import chosen_heads, heads_of, pairs_of, trained_matrix
from attractor.heads.monitor.head import WatchedHead, constraints_of
from attractor.support.checks import check_function, naming
from attractor.support.errors import InvalidInputError, NotFiniteError
from attractor.tokens import Tokens


def watched_heads(
    model: Any,
    tokenizer: Any = None,
    texts: Any = None,
    *,
    layers: Sequence[int] | None = None,
    heads: Sequence[tuple[int, int]] | None = None,
    inputs: Mapping[str, Any] | None = None,
    documents: int | None = None,
    length: int = 64,
    part: str | None = None,
    queries_per_document: int = 1,
    sink_positions: int | None = None,
    batch: int = 16,
    seed: int = 0,
) -> list[WatchedHead]:
    """Heads of a model of transformers, for a ``HeadMonitor`` to watch while it is trained.

    Every record runs the model once on the same texts, in evaluation mode, and looks at the same
    queries; the model, its gradients and random numbers stay as they are. The matrix of a head is
    that of an audit: ``K^T [Q, b]`` in orthonormal coordinates, where projections are known.

    Args:
        model: A model of transformers, the one that is trained; it is run here once, to see
            whether its heads can be read.
        tokenizer: Its tokenizer.
        texts: Texts, each a document, or pairs of document and text: some tens, as each query makes
            a constraint of every token it may attend to.
        layers: Numbers of layers; None for all.
        heads: In place of layers, pairs of a layer and a head.
        inputs: In place of texts, arguments of the model by name.
        documents: The number of documents, the first ones; None for all.
        length: Tokens after which texts are cut.
        part: The part of an encoder-decoder, as of ``capture_heads``.
        queries_per_document: Queries drawn from each document.
        sink_positions: First positions that are not drawn as queries; None for 1 where the mask is
            causal, else 0.
        batch: Texts that the model sees at once.
        seed: Seed of the queries.

    Returns:
        The heads whose scores are ``k^T q``, called ``"layer.head"``.

    Raises:
        InvalidInputError: If ``capture_heads`` refuses an argument, a head does not exist, or the
            scores of one that is asked for, or of all, are not ``k^T q``.
    """
    try:
        from attractor.heads.capture import capture_heads
    except ImportError:
        raise InvalidInputError(
            "model", "PyTorch is not installed", 'Install "attractor[transformers]"'
        ) from None
    wanted = layers if heads is None else sorted({layer for layer, _ in pairs_of(heads)})
    capture = functools.partial(
        capture_heads, tokenizer=tokenizer, texts=texts, inputs=inputs, documents=documents,
        length=length, layers=wanted, part=part, queries_per_document=queries_per_document,
        sink_positions=sink_positions, values=False, batch=batch, seed=seed,
    )  # fmt: skip
    with naming(layers="layers" if heads is None else "heads"):
        captured = capture(model)
    chosen = chosen_heads(captured, layers, heads)
    found, others = [], []
    for number, layer in captured:
        for head in heads_of(number, layer, chosen):
            bilinear = layer.status[head] == CaptureStatus.BILINEAR
            (found if bilinear else others).append((number, head, layer.status[head]))
    if others and (heads is not None or not found):
        number, head, status = others[0]
        raise InvalidInputError(
            "model" if heads is None else "heads",
            f"head {number}.{head} is {status}: no matrix stands for it",
            "Watch others, if there are any",
        )
    pairs = [(number, head) for number, head, _ in found]
    reading = functools.partial(_read, capture)
    watched = [
        WatchedHead(
            f"{number}.{head}",
            matrix=lambda read, pair=(number, head): read[pair][1],
            tokens=lambda read, pair=(number, head): read[pair][0],
            reading=reading,
            words=captured.token,
        )
        for number, head in pairs
    ]
    read = _Read(captured)
    for one, pair in zip(watched, pairs, strict=True):
        object.__setattr__(one, "known_constraints", constraints_of(read[pair][0]))
    return watched


def _read(capture: functools.partial[Captured], model: Any) -> Any:
    """All heads as they are now; None where the model computes no numbers."""
    try:
        captured = capture(model)
    except NotFiniteError:
        return None
    return _Read(captured)


class _Read(dict[tuple[int, int], tuple[Tokens, Float[np.ndarray, "d e"]]]):
    """Inputs and matrix of each head that is asked for, of which some may be gone."""

    def __init__(self, captured: Captured) -> None:
        self._layers = dict(captured)

    def __missing__(self, pair: tuple[int, int]) -> tuple[Tokens, Float[np.ndarray, "d e"]]:
        number, head = pair
        self[pair] = found = trained_matrix(self._layers[number], head)
        return found


def trainer_callback(call: Callable[[int, Any], None]) -> Any:
    """A callback for ``Trainer.add_callback`` that calls a function with step and model.

    ``trainer.add_callback(trainer_callback(monitor))`` records heads with a ``HeadMonitor``, which
    says before the first step whether they can be read (``check``). Where several processes train,
    the first alone calls it.

    Args:
        call: Called with the number of the step and the model, after every step of the optimizer.

    Raises:
        InvalidInputError: If it cannot be called, or transformers is not installed.
    """
    check_function("call", call, "Give a HeadMonitor, or a function of step and model")
    try:
        from transformers import TrainerCallback
    except ImportError:
        raise InvalidInputError(
            "call", "transformers is not installed", 'Install "attractor[transformers]"'
        ) from None

    check = getattr(call, "check", None)

    class Calling(TrainerCallback):
        def on_train_begin(
            self, args: Any, state: Any, control: Any, model: Any = None, **_: Any
        ) -> None:
            if check is not None and state.is_world_process_zero:
                check(model)

        def on_step_end(
            self, args: Any, state: Any, control: Any, model: Any = None, **_: Any
        ) -> None:
            if state.is_world_process_zero:
                call(state.global_step, model)

    return Calling()
