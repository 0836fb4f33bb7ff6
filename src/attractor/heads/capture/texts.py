"""What a model is shown, texts or arrays of any other kind, and a part of it run on that."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int

from attractor.heads.capture.calls import Call, calls_of
from attractor.heads.captured.rows import LEAST_CANDIDATES
from attractor.support.checks import check_items, shown
from attractor.support.errors import InvalidInputError
from attractor.support.precision import as_plain
from attractor.support.randomness import seeded

_TOO_FEW = "Give at least two documents of different texts"


@dataclasses.dataclass(frozen=True)
class Table:
    """Tokens of some rows.

    Attributes:
        token: The tokens as texts, ``(rows, tokens)``; empty where there is padding.
        special: Which of them are no content, ``(rows, tokens)``.
        padding: Which of them are padding, ``(rows, tokens)``.
    """

    token: np.ndarray
    special: Bool[np.ndarray, "rows tokens"]
    padding: Bool[np.ndarray, "rows tokens"]

    def with_sinks(self, count: int) -> Table:
        """The same where the first positions are no content, either."""
        special = self.special.copy()
        special[:, :count] = True
        return Table(self.token, special, self.padding)

    def late(self) -> Table:
        """The same as a decoder sees it: one token late, behind one to start from."""
        every = self.token, self.special, self.padding
        token, special, padding = (np.roll(one, 1, axis=1) for one in every)
        token[:, 0], special[:, 0], padding[:, 0] = "", True, False
        return Table(token, special, padding)


@dataclasses.dataclass(frozen=True)
class Shown:
    """What a model is shown, a row for each text.

    Attributes:
        arrays: Arguments of the model by name, a row each, filled up to one length.
        tokens: Their tokens; None where there are none, as in pictures.
        decoder: The tokens that a decoder sees; None where there are none.
        lengths: Tokens of each row, padding left out; None where rows have one length.
        document: The document of each row.
        text: The number of each row among those of its document.
        queries: Queries to draw from each row.
        digest: The SHA-256 of all that is shown.
    """

    arrays: Mapping[str, torch.Tensor]
    tokens: Table | None
    decoder: Table | None
    lengths: Int[np.ndarray, "rows"] | None
    document: Int[np.ndarray, "rows"]
    text: Int[np.ndarray, "rows"]
    queries: Int[np.ndarray, "rows"]
    digest: str

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.document)

    @property
    def longest(self) -> int:
        """The row with most tokens."""
        return 0 if self.lengths is None else int(np.argmax(self.lengths))

    def batch(
        self, rows: Sequence[int], device: torch.device, dtype: torch.dtype
    ) -> dict[str, torch.Tensor]:
        """Arguments of the model for some rows, no longer than the longest of them."""
        found = {name: array[list(rows)] for name, array in self.arrays.items()}
        if self.lengths is not None:
            longest = int(self.lengths[list(rows)].max())
            found = {name: array[:, :longest] for name, array in found.items()}
        return {
            name: array.to(device, dtype if array.is_floating_point() else array.dtype)
            for name, array in found.items()
        }


def texts_shown(
    texts: Any,
    tokenizer: Any,
    *,
    length: int,
    documents: int | None,
    queries_per_document: int,
    seed: int,
) -> Shown:
    """Texts as tokens; equal ones count once, and those too short to choose in not at all.

    Args:
        texts: Texts, each a document, or pairs of document and text.
        tokenizer: A tokenizer of transformers.
        length: Tokens after which texts are cut.
        documents: The number of documents, the first ones; None for all.
        queries_per_document: Queries drawn from a document, over its texts in turn.
        seed: The seed of the order of texts in a document.

    Raises:
        InvalidInputError: If they are no texts, leave fewer than two documents, or are of words
            that the tokenizer does not know.
    """
    pairs = _distinct(_pairs(texts))
    if not callable(tokenizer) or not hasattr(tokenizer, "convert_ids_to_tokens"):
        raise InvalidInputError(
            "tokenizer", f"{shown(tokenizer)} is no tokenizer of transformers", "Give one"
        )
    _require_two([document for document, _ in pairs], "texts", "given")
    named: Any = tokenizer
    with seeded(seed, purpose="texts as tokens"):  # which some tokenizers draw
        encoded = named([text for _, text in pairs], truncation=True, max_length=length)
    ids = [list(row) for row in encoded["input_ids"]]
    if not any(ids):
        raise InvalidInputError(
            "tokenizer", "it makes no tokens of the texts", "Give one with a vocabulary"
        )
    _require_known(tokenizer, ids)
    special = _special_ids(tokenizer)
    kept = [
        row
        for row, own in enumerate(ids)
        if sum(one not in special for one in own) >= LEAST_CANDIDATES
    ]
    numbers = _numbers([document for document, _ in pairs])
    kept = _of_first_documents(kept, numbers, documents)
    enough = f"long enough, of {LEAST_CANDIDATES} tokens and more"
    _require_two([numbers[row] for row in kept], "texts", enough)
    document, text, queries, chosen = _planned(kept, numbers, queries_per_document, seed)
    rows = [ids[row] for row in chosen]
    lengths = np.array([len(row) for row in rows])
    padding = getattr(tokenizer, "pad_token_id", None) or 0
    padded = np.full((len(rows), lengths.max()), padding, dtype=np.int64)
    there = np.arange(lengths.max()) < lengths[:, None]
    padded[there] = np.concatenate(rows)
    names = _names(tokenizer, np.unique(padded))
    token = np.array([[names[one] for one in row] for row in padded.tolist()], dtype=object)
    token[~there] = ""
    tokens = Table(token, ~there | np.isin(padded, sorted(special)), ~there)
    digest = hashlib.sha256()
    for row in chosen:
        digest.update(hashlib.sha256(pairs[row][1].encode("utf-8", "surrogatepass")).digest())
    return Shown(
        arrays={
            "input_ids": torch.from_numpy(padded),
            "attention_mask": torch.from_numpy(there.astype(np.int64)),
        },
        tokens=tokens,
        decoder=tokens.late(),
        lengths=lengths,
        document=document,
        text=text,
        queries=queries,
        digest=digest.hexdigest(),
    )


def arrays_shown(
    inputs: Any,
    tokenizer: Any,
    *,
    documents: int | None,
    queries_per_document: int,
) -> Shown:
    """Arrays of any kind, such as pictures, a document for each row; equal ones count once.

    Args:
        inputs: Arguments of the model by name, with a row for each document.
        tokenizer: The tokenizer of ``input_ids`` among them; None where there is none.
        documents: The number of documents, the first ones; None for all.
        queries_per_document: Queries drawn from each.

    Raises:
        InvalidInputError: If they are no arrays, or leave fewer than two documents.
    """
    if not isinstance(inputs, Mapping) or not inputs:
        raise InvalidInputError(
            "inputs", f"{shown(inputs)} is no table of arrays", "Give {'pixel_values': array}"
        )
    arrays = {str(name): _tensor(f"inputs[{name!r}]", one) for name, one in inputs.items()}
    counts = {name: len(one) for name, one in arrays.items()}
    if len(set(counts.values())) > 1:
        raise InvalidInputError("inputs", f"they have {counts} rows", "Give one row a document")
    first: dict[bytes, int] = {}
    for row in range(next(iter(counts.values()))):
        content = [one[row].contiguous().numpy().tobytes() for one in arrays.values()]
        first.setdefault(hashlib.sha256(b"".join(content)).digest(), row)
    rows = list(first.values())[:documents]
    _require_two(rows, "inputs", "given")
    arrays = {name: one[rows] for name, one in arrays.items()}
    masked = arrays.get("attention_mask"), arrays.get("decoder_attention_mask")
    tokens = _table(arrays.get("input_ids"), masked[0], tokenizer)
    decoder = _table(arrays.get("decoder_input_ids"), masked[1], tokenizer)
    return Shown(
        arrays=arrays,
        tokens=tokens,
        decoder=decoder or (tokens and tokens.late()),
        lengths=None,
        document=np.array(rows),
        text=np.zeros(len(rows), dtype=np.int64),
        queries=np.full(len(rows), queries_per_document),
        digest=hashlib.sha256(b"".join(list(first)[: len(rows)])).hexdigest(),
    )


def _table(ids: Any, mask: Any, tokenizer: Any) -> Table | None:
    """The tokens of an argument of the model."""
    if ids is None:
        return None
    ids = ids.numpy()
    there = np.ones(ids.shape, dtype=bool) if mask is None else mask.numpy() != 0
    if ids.ndim != 2 or there.shape != ids.shape:
        raise InvalidInputError(
            "inputs", f"tokens of the shape {ids.shape}, masked by {there.shape}", "Give one a row"
        )
    names, special = {one: str(one) for one in np.unique(ids).tolist()}, ~there
    if tokenizer is not None:
        names = _names(tokenizer, np.unique(ids))
        special = special | np.isin(ids, sorted(_special_ids(tokenizer)))
    token = np.array([[names[one] for one in row] for row in ids.tolist()], dtype=object)
    token[~there] = ""
    return Table(token, special, ~there)


def _pairs(texts: Any) -> list[tuple[Any, str]]:
    items = check_items("texts", texts, object, 1)
    if isinstance(items[0], str):
        return list(enumerate(check_items("texts", items, str)))
    for place, one in enumerate(items):
        pair = isinstance(one, tuple | list) and len(one) == 2 and isinstance(one[1], str)
        whole = pair and isinstance(one[0], str | int | np.integer)
        if not whole or (isinstance(one[0], int) and one[0] < 0):
            raise InvalidInputError(
                f"texts[{place}]",
                f"{shown(one)} is no text, nor a pair of document and text",
                "Give texts, or (document, text) for each",
            )
    return [(document, text) for document, text in items]


def _distinct(pairs: list[tuple[Any, str]]) -> list[tuple[Any, str]]:
    """Pairs whose texts differ, the first of each."""
    first: dict[str, Any] = {}
    for document, text in pairs:
        first.setdefault(text, document)
    return [(document, text) for text, document in first.items()]


def _numbers(documents: list[Any]) -> list[int]:
    """Documents by number: their own, where all have one, or the order in which they come."""
    if all(isinstance(one, int | np.integer) for one in documents):
        return [int(one) for one in documents]
    order: dict[Any, int] = {}
    return [order.setdefault(one, len(order)) for one in documents]


def _of_first_documents(rows: list[int], numbers: list[int], count: int | None) -> list[int]:
    if count is None:
        return rows
    first = list(dict.fromkeys(numbers[row] for row in rows))[:count]
    return [row for row in rows if numbers[row] in first]


def _planned(
    rows: list[int], numbers: list[int], queries_per_document: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[int]]:
    """Document, number in it and queries of each text that has any, and which texts these are."""
    of_document: dict[int, list[int]] = {}
    for row in rows:
        of_document.setdefault(numbers[row], []).append(row)
    plan = []
    for number, own in of_document.items():
        turns = np.random.default_rng((seed, number)).permutation(len(own))
        counts = np.bincount(turns[np.arange(queries_per_document) % len(own)], minlength=len(own))
        plan += [(number, text, counts[text], own[text]) for text in np.flatnonzero(counts)]
    document, text, queries, chosen = zip(*plan, strict=True)
    return np.array(document), np.array(text), np.array(queries), list(chosen)


def _require_two(documents: Sequence[Any], argument: str, which: str) -> None:
    count = len(set(documents))
    if count < 2:
        what = "no document is" if count == 0 else "one document of distinct texts is"
        raise InvalidInputError(argument, f"{what} {which}", _TOO_FEW)


def _require_known(tokenizer: Any, ids: list[list[int]]) -> None:
    """Refuses texts most of whose tokens are unknown, about which a model says nothing."""
    unknown: Any = getattr(tokenizer, "unk_token_id", None)
    others = set(tokenizer.all_special_ids) - {unknown}
    content = [one for row in ids for one in row if one not in others]
    count = content.count(unknown)
    if 2 * count > len(content):
        raise InvalidInputError(
            "tokenizer",
            f"the tokenizer does not know {count:,} of {len(content):,} tokens of the texts",
            "Give the one that the model was trained with, and texts written as it expects them",
        )


def _special_ids(tokenizer: Any) -> set[int]:
    """Tokens that are no content; an unknown word is, unless its token has another task, too."""
    special = set(tokenizer.all_special_ids)
    unknown: Any = getattr(tokenizer, "unk_token_id", None)
    others = {
        getattr(tokenizer, f"{name}_token_id", None)
        for name in ("bos", "eos", "pad", "cls", "sep", "mask")
    }
    return special - ({unknown} - others)


def _names(tokenizer: Any, ids: np.ndarray) -> dict[int, str]:
    """Tokens as texts."""
    return {one: str(tokenizer.convert_ids_to_tokens(one)) for one in ids.tolist()}


def _tensor(argument: str, value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        tensor = value.detach().cpu()
    else:
        array = as_plain(argument, value)
        if array.dtype.kind not in "fiub":
            raise InvalidInputError(argument, f"it holds {array.dtype}", "Give numbers")
        tensor = torch.from_numpy(np.ascontiguousarray(array))
    if tensor.ndim == 0:
        raise InvalidInputError(argument, "it is one number", "Give a row a document")
    return tensor


PARTS = ("encoder", "decoder", "cross")


@dataclasses.dataclass(frozen=True)
class Run:
    """What of a model is run, and which of its calls count.

    Attributes:
        model: What is run.
        part: ``"encoder"``, ``"decoder"`` or ``"cross"``; ``"all"`` of a model without parts.
        decoder: Modules of the decoder; empty where it is not run, or there is none.
        start: The token that a decoder starts from.
    """

    model: torch.nn.Module
    part: str
    decoder: frozenset[torch.nn.Module]
    start: int

    @classmethod
    def of(cls, model: torch.nn.Module, shown: Shown, part: str | None) -> Run:
        """What is run of a model for a part; None for the encoder, or all where there is none.

        Layers that read what attention has made of a text are left out, where there are any.

        Raises:
            InvalidInputError: If the model has no such part.
        """
        base: Any = getattr(model, "base_model", model)
        if not (shown.arrays.keys() & _argument_names(model)) <= _argument_names(base):
            base = model  # which some have a module for that is no model itself
        configuration: Any = model.config
        if not getattr(configuration, "is_encoder_decoder", False):
            if part in ("encoder", "decoder"):
                raise InvalidInputError(
                    "part", f"{type(model).__name__} has no parts", "Leave it out, or give 'cross'"
                )
            return cls(base, part or "all", frozenset(), 0)
        encoder = base.get_encoder()
        if part in (None, "encoder"):
            return cls(encoder, "encoder", frozenset(), 0)
        start = getattr(configuration, "decoder_start_token_id", None)
        start = getattr(configuration, "pad_token_id", None) if start is None else start
        decoder = frozenset(base.modules()) - frozenset(encoder.modules())
        return cls(base, part, decoder, start or 0)

    def arguments(self, shown: Shown, rows: Sequence[int]) -> dict[str, Any]:
        """Arguments of the model for some rows: what it is shown, as far as it takes that."""
        weight = next(self.model.parameters())
        found: dict[str, Any] = shown.batch(rows, weight.device, weight.dtype)
        if self.decoder and "input_ids" in found:
            late = found["input_ids"].roll(1, 1)
            late[:, 0] = self.start
            found.setdefault("decoder_input_ids", late)
        names = _argument_names(self.model)
        found = {name: one for name, one in found.items() if name in names or "kwargs" in names}
        return found | ({"use_cache": False} if "use_cache" in names else {})

    def captures(self, call: Call, given: dict[str, Any]) -> bool:
        """Whether a call, in a run with some arguments, is one of the part."""
        if call.cross != (self.part == "cross"):
            return False
        if self.decoder and call.module not in self.decoder:
            return False
        tokens = given.get("decoder_input_ids" if self.decoder else "input_ids")
        if tokens is not None and call.query.shape[::2] != tokens.shape:
            return False
        return call.cross or call.query.shape[2] == call.key.shape[2]

    def calls(self, given: dict[str, Any]) -> tuple[list[Call], int]:
        """The calls of the part, and the number of all that there are.

        Those count that are on sequences as long as the first, where tokens do not say how long.
        """
        every: list[Call] = []
        with calls_of(self.model, every.append):
            self.model(**given)
        own = [call for call in every if self.captures(call, given)]
        sizes = [call.allowed.shape[2:] for call in own]
        return [one for one, size in zip(own, sizes, strict=True) if size == sizes[0]], len(every)

    def moved(self, given: dict[str, Any], own: Sequence[Call], by: int) -> list[Call]:
        """The calls on the same sequence where every position is larger.

        The calls themselves where the model takes no positions, or fails on those.
        """
        argument = "decoder_position_ids" if self.part == "decoder" else "position_ids"
        if argument not in _argument_names(self.model):
            return list(own)
        query = own[0].query
        here = given.get(argument, torch.arange(query.shape[2], device=query.device)[None])
        try:
            found, _ = self.calls({**given, argument: here + by})
        except Exception:  # of a model that reads positions otherwise
            return list(own)
        return found if len(found) == len(own) else list(own)


def _argument_names(model: torch.nn.Module) -> set[str]:
    """The names of a model's arguments."""
    return set(inspect.signature(model.forward).parameters)
