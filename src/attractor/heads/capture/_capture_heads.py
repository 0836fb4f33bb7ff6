"""The heads of a model of transformers on texts, as the model itself computes them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from attractor.heads import Captured, CapturedLayer
from attractor.heads.capture.calls import register
from attractor.heads.capture.model import (
    check_model,
    is_folder,
    load_model,
    load_tokenizer,
    weights_hash,
)
from attractor.heads.capture.parts import part_of
from attractor.heads.capture.rows import captured_batches
from attractor.heads.capture.run import PARTS
from attractor.heads.capture.texts import arrays_shown, texts_shown
from attractor.heads.captured.captured import of_all
from attractor.heads.captured.captured_file import CapturedWriter, writing_captured
from attractor.heads.captured.rows import LEAST_CANDIDATES
from attractor.support.checks import check_choice, check_count, check_flag, check_items, check_path
from attractor.support.errors import InvalidInputError
from attractor.support.memory import require_memory
from attractor.support.progress import progress_bar
from attractor.support.randomness import check_seed
from attractor.support.storage import check_writable
from attractor.version import __version__


def capture_heads(
    model: Any,
    tokenizer: Any = None,
    texts: Any = None,
    *,
    inputs: Mapping[str, Any] | None = None,
    documents: int | None = None,
    length: int = 64,
    layers: Any = None,
    part: str | None = None,
    queries_per_document: int = 1,
    sink_positions: int | None = None,
    values: bool = True,
    batch: int = 16,
    seed: int = 0,
    path: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> Captured:
    """Keys, queries and attention of every head of a model at queries drawn from texts.

    The model runs as it is: its attention is that of its own file, and what it computes is seen on
    the way, scores being ``k_j^T q_i`` with any scale put into the queries. Where positions rotate
    keys and queries, both are turned back by the rotation of the query, which leaves scores as they
    are; that nothing of the positions is left is tested by moving the text. Keys of grouped heads
    are captured once a group. Every head says how far softmax of its scores is from the attention
    of the model (``CapturedLayer.self_check``) and, where they differ, that it is not bilinear; or
    that it is not determined, where rounding or a learned sink hides it.

    The matrices that made queries and keys are read off the model, however it stores them
    (``CapturedLayer.projections``), and kept if they give those of the first batch to rounding.
    Keys that positions rotate have none; neither have layers that norm or clip queries, or make
    them of anything but what the layer reads.

    A query is drawn among the content tokens that have at least four content tokens to choose from
    in every layer, those masked left out. Content is what is no special token, no padding and not
    among the first ``sink_positions``.

    Args:
        model: A model of transformers, or the folder that one was saved in; names of a hub are not
            looked up, and no code of a folder is run. It is afterwards as it was.
        tokenizer: Its tokenizer; None for the one in the folder.
        texts: Texts, each a document, or pairs of document and text. Equal texts count once.
        inputs: In place of texts, arguments of the model by name, with a row for each document:
            pictures, say.
        documents: The number of documents, the first ones; None for all.
        length: Tokens after which texts are cut.
        layers: Numbers of layers, as the model itself numbers them; None for all that have heads.
        part: Of an encoder-decoder: ``"encoder"``, the default, ``"decoder"``, or ``"cross"`` for
            queries of the decoder at keys of the encoder. A decoder sees the text itself, one token
            late, unless ``inputs`` say otherwise. Of any model ``"cross"``, where it has such.
        queries_per_document: Queries drawn from each document, over its texts in turn.
        sink_positions: First positions that are no content; None for 1 where the mask is causal,
            else 0.
        values: Whether to capture values, too.
        batch: Texts that the model sees at once.
        seed: Seed of the queries. Those of a document depend on it and the document's number alone.
        path: A file to write to, layer by layer and batch by batch, so that memory stays bounded;
            what is returned reads a layer when it is asked for. None to hold all in memory.
        progress: Whether to show a progress bar.

    Returns:
        What was captured, in the precision of the model.

    Raises:
        InvalidInputError: If an argument cannot be used, the folder lacks weights or holds others
            than plain tensors, the model is in half precision, never calls attention through
            transformers' interface, or no text is long enough.
        WriteError: If the file cannot be written.
        AttractorError: If another capture is under way.
    """
    length, batch = check_count("length", length), check_count("batch", batch)
    queries_per_document = check_count("queries_per_document", queries_per_document)
    if documents is not None:
        documents = check_count("documents", documents, 2)
    if sink_positions is not None:
        sink_positions = check_count("sink_positions", sink_positions, 0)
    if layers is not None:
        layers = [check_count("layers", one, 0) for one in check_items("layers", layers, object, 1)]
    if part is not None:
        check_choice("part", part, PARTS)
    if path is not None:
        path = _writable(path)
    values, seed = check_flag("values", values), check_seed("seed", seed)
    folder = is_folder(model)
    register()
    if not folder:
        check_model(model)
    if folder and tokenizer is None and inputs is None:
        tokenizer = load_tokenizer(model)
    if (texts is None) == (inputs is None):
        raise InvalidInputError(
            "texts", "give either texts or inputs", "Leave out one of them, and not both"
        )
    counts = {"documents": documents, "queries_per_document": queries_per_document}
    if inputs is not None:
        shown = arrays_shown(inputs, tokenizer, **counts)
    else:
        shown = texts_shown(texts, tokenizer, length=length, seed=seed, **counts)
    loaded = check_model(load_model(model)) if folder else model
    studied = part_of(loaded, shown, part, sink_positions, layers)
    origin = {
        **studied.origin,
        "weights": weights_hash(loaded),
        "texts": shown.digest,
        "seed": str(seed),
        "attractor": __version__,
    }
    needed = studied.bytes[values] * int(shown.queries.sum()) + studied.projection_bytes
    if path is None:
        otherwise = "Give path= to write it to a file, fewer documents, or some of the layers"
        require_memory(
            "path", "what is captured", needed=2.0 * needed, remedy=lambda available: otherwise
        )
    with contextlib.ExitStack() as stack:
        if path is None:
            writer = _InMemory()
        else:
            writer = stack.enter_context(writing_captured(path, needed=needed))
        advance = stack.enter_context(progress_bar("capturing", len(shown), enabled=progress))
        rows, position = [], []
        for drawn in captured_batches(
            studied, shown, batch=batch, seed=seed, values=values, write=writer.write
        ):
            rows += drawn.rows
            position += drawn.position
            advance(drawn.seen)
        if not rows:
            raise InvalidInputError(
                "texts",
                f"no token of content has {LEAST_CANDIDATES} to choose from in every layer",
                "Give longer texts",
            )
        captured = Captured(
            writer.layers(len(rows)),
            document=shown.document[rows],
            position=np.array(position),
            token=studied.keys.token[rows],
            special=studied.keys.special[rows],
            origin=origin,
        )
        if isinstance(writer, CapturedWriter):
            writer.describe(captured)
    return captured


class _InMemory:
    """Takes layers piece by piece, as the writer of a file does."""

    def __init__(self) -> None:
        self._pieces: dict[int, dict[int, CapturedLayer]] = {}

    def write(self, number: int, layer: CapturedLayer, start: int = 0) -> None:
        """Takes queries of a layer; those from the same start on are replaced."""
        self._pieces.setdefault(number, {})[start] = layer

    def layers(self, count: int) -> dict[int, CapturedLayer]:
        """The layers, as far as there are queries."""
        return {
            number: of_all([layer for start, layer in pieces.items() if start < count])
            for number, pieces in self._pieces.items()
        }


def _writable(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    if check_path("path", path).suffix != ".nc":
        raise InvalidInputError("path", f"{os.fspath(path)} does not end in .nc", "Give .nc")
    check_writable("path", path)
    return path
