"""The heads of a model of transformers on texts, as the model itself computes them."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from attractor.heads import Captured, CapturedLayer
from attractor.heads.capture.calls import register
from attractor.heads.capture.parts import part_of
from attractor.heads.capture.rows import captured_batches
from attractor.heads.capture.texts import PARTS, arrays_shown, texts_shown
from attractor.heads.captured.captured import of_all
from attractor.heads.captured.captured_file import CapturedWriter, writing_captured
from attractor.heads.captured.rows import LEAST_CANDIDATES
from attractor.support.checks import (
    check_choice,
    check_count,
    check_flag,
    check_items,
    check_path,
    shown,
)
from attractor.support.errors import InvalidInputError
from attractor.support.memory import require_memory
from attractor.support.progress import progress_bar
from attractor.support.randomness import check_seed, seeded
from attractor.support.storage import check_writable
from attractor.version import __version__

_LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
_REMEDY = "Give a model of transformers, or the folder that one was saved in"
_NO_TOKENIZER = "Save it there too, with tokenizer.save_pretrained"
_SHOWN = 3
"""Names of missing weights that an error lists."""


def is_folder(model: Any) -> bool:
    """Whether a model is given by a folder, which then must be there.

    Raises:
        InvalidInputError: If it is the name of a folder that holds no model, or of none.
    """
    if not isinstance(model, str | os.PathLike):
        return False
    folder = Path(model)
    if not folder.is_dir():
        raise InvalidInputError(
            "model", f"there is no folder {shown(os.fspath(model))}; nothing is downloaded", _REMEDY
        )
    if not (folder / "config.json").is_file():
        raise InvalidInputError("model", f"the folder {folder} has no config.json", _REMEDY)
    return True


def _transformers() -> Any:
    """The library that models are of, an extra; by its own names, which it loads when used."""
    import transformers

    return transformers


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No bars and warnings of transformers: what matters about a folder is an error here."""
    from transformers.utils import logging

    bars, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


@_quiet()
@seeded(purpose="a model that is loaded")
def load_model(folder: str | os.PathLike[str]) -> torch.nn.Module:
    """The model of a folder, in single precision or double, with all of its weights.

    No code of the folder is run, and weights are read from safetensors or as plain tensors.

    Raises:
        InvalidInputError: If it cannot be loaded, or lacks weights.
    """
    transformers, path = _transformers(), os.fspath(folder)
    try:
        configuration = transformers.AutoConfig.from_pretrained(path, **_LOCAL)
        names = getattr(configuration, "architectures", None) or []
        kinds = [getattr(transformers, name, None) for name in names if isinstance(name, str)]
        models = [
            one
            for one in kinds
            if isinstance(one, type) and issubclass(one, transformers.PreTrainedModel)
        ]
        kind: Any = models[0] if models else transformers.AutoModel
        model, report = kind.from_pretrained(
            path,
            config=configuration,
            attn_implementation="eager",  # a folder may name code to be downloaded
            dtype=_precision(configuration),
            weights_only=True,
            output_loading_info=True,
            **_LOCAL,
        )
    except Exception as error:  # of any kind, as files are damaged in any way
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        raise InvalidInputError(
            "model", f"the folder {path} cannot be loaded ({reason})", "Save it again"
        ) from error
    missing = sorted(report["missing_keys"])
    if missing:
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise InvalidInputError(
            "model",
            f"the folder {path} lacks weights: {', '.join(missing[:_SHOWN])}{more}",
            "Give the whole model: heads with random weights say nothing",
        )
    return model


@_quiet()
@seeded(purpose="a tokenizer that is loaded")
def load_tokenizer(folder: str | os.PathLike[str]) -> Any:
    """The tokenizer of a folder.

    Raises:
        InvalidInputError: If there is none that can be loaded.
    """
    transformers, path = _transformers(), os.fspath(folder)
    try:
        found = transformers.AutoTokenizer.from_pretrained(path, **_LOCAL)
        words = set(found.get_vocab()) - set(found.all_special_tokens)
    except Exception as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        raise InvalidInputError(
            "tokenizer", f"the folder {path} has none that can be loaded ({reason})", _NO_TOKENIZER
        ) from error
    if not words:  # some are made of nothing
        raise InvalidInputError("tokenizer", f"the folder {path} has no vocabulary", _NO_TOKENIZER)
    return found


def check_model(model: Any) -> torch.nn.Module:
    """Checks that an object is a model whose numbers are precise enough.

    Raises:
        InvalidInputError: If it is none, or its weights are in half precision or not there.
    """
    if not isinstance(model, torch.nn.Module) or not hasattr(model, "config"):
        raise InvalidInputError("model", f"{shown(model)} is no model of transformers", _REMEDY)
    for name, weight in model.named_parameters():
        if weight.device.type == "meta":
            raise InvalidInputError("model", f"{name} has no numbers", "Load the whole model")
        if weight.is_floating_point() and weight.dtype not in (torch.float32, torch.float64):
            kind = str(weight.dtype).removeprefix("torch.")
            raise InvalidInputError(
                "model",
                f"its weights are {kind}, too coarse to define a margin",
                "Give model.float()",
            )
    return model


def weights_hash(model: torch.nn.Module) -> str:
    """The SHA-256 of all weights and their names."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        if isinstance(tensor, torch.Tensor):
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
            flat = tensor.detach().cpu().contiguous().reshape(-1)
            digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _precision(configuration: Any) -> torch.dtype:
    stored = getattr(configuration, "dtype", None)
    return torch.float64 if stored in (torch.float64, "float64") else torch.float32


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


def captured_in_bert(
    states: Float[np.ndarray, "n T hidden"],
    K: Float[np.ndarray, "heads width hidden"],
    Q: Float[np.ndarray, "heads width hidden"],
) -> Captured:
    """Heads on given hidden states, in the only layer of a BERT.

    Args:
        states: Hidden states of mean zero and variance one, which layer norms leave as they are.
        K: Matrices of keys; heads times width are the hidden size.
        Q: Matrices of queries: scores are ``(K x)^T (Q z)``.
    """
    from transformers import BertConfig, BertModel

    heads, width, hidden = K.shape
    config = BertConfig(
        vocab_size=1, hidden_size=hidden, num_attention_heads=heads, num_hidden_layers=1,
        intermediate_size=1, max_position_embeddings=states.shape[1], type_vocab_size=1,
        layer_norm_eps=0.0, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        pad_token_id=None,
    )  # fmt: skip
    model = BertModel(config, add_pooling_layer=False).double().eval()
    attention = model.encoder.layer[0].attention.self
    with torch.no_grad():
        model.embeddings.position_embeddings.weight.zero_()
        model.embeddings.token_type_embeddings.weight.zero_()
        for projection, given in ((attention.key, K), (attention.query, Q * np.sqrt(width))):
            projection.weight.copy_(torch.from_numpy(given.reshape(-1, hidden)))
            projection.register_parameter("bias", None)  # which was not trained
    return capture_heads(model, inputs={"inputs_embeds": torch.from_numpy(states)}, values=False)
