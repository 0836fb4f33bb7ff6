"""What a capture is pointed at, read without PyTorch: documents, and the shape of a model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attractor.support.containers import read_json, read_text_blocks
from attractor.support.errors import InvalidInputError

_REMEDY = "Give a file with a document a line, or a folder of .txt files, in UTF-8"
LONGEST = 2**20
"""Letters of a document: models see far less of it."""


def check_documents(path: Path) -> None:
    """Refuses a path where no texts can be.

    Raises:
        InvalidInputError: If there is neither a file nor a folder with files of text.
    """
    if path.is_dir():
        if not any(path.glob("*.txt")):
            raise InvalidInputError("TEXTS", f"the folder {path} has no .txt file", _REMEDY)
    elif not path.is_file():
        raise InvalidInputError("TEXTS", f"there is no file {path}", _REMEDY)


def read_documents(path: Path, most: int) -> list[str]:
    """Reads the first documents that are not empty: lines of a file, or ``.txt`` files by name.

    Args:
        path: The file or folder.
        most: Documents to read.

    Raises:
        InvalidInputError: If there is none.
        FileFormatError: If one is no text in UTF-8.
    """
    found = list(itertools.islice((text for text in _texts(path) if text), most))
    if not found:
        raise InvalidInputError("TEXTS", f"{path} has no text", _REMEDY)
    return found


def _texts(path: Path) -> Iterator[str]:
    """Documents with single spaces, cut where they are very long."""
    if path.is_dir():
        for file in sorted(path.glob("*.txt")):
            yield _spaced(_begun(file))
        return
    line = ""
    for text in read_text_blocks(path):
        first, *others = text.split("\n")
        line = (line + first)[:LONGEST]
        for other in others:
            yield _spaced(line)
            line = other[:LONGEST]
    yield _spaced(line)


def _begun(file: Path) -> str:
    """The beginning of a file."""
    text = ""
    for block in read_text_blocks(file):
        text += block
        if len(text) >= LONGEST:
            break
    return text[:LONGEST]


def _spaced(text: str) -> str:
    return " ".join(text.split())


def listed_layers(numbers: Sequence[int]) -> str:
    """Numbers in rising order: ``"0 to 5"``, or ``"2, 5, 8"`` where some are left out."""
    if len(numbers) > 1 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))


_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
"""Names that configurations have for both."""
_KINDS = "layer_types"
_WITHOUT_HEADS = ("conv", "linear_attention", "mamba")
"""Where hybrid models say what each layer is, and kinds of layers that have no heads."""


@dataclass(frozen=True)
class ModelShape:
    """Numbers of layers, and of heads of each, as far as they are known.

    Attributes:
        layers: Layers; None where the configuration does not say so plainly.
        heads: Heads of a layer; None likewise.
        without_heads: Layers that the configuration says have none.
    """

    layers: int | None
    heads: int | None
    without_heads: tuple[int, ...] = ()

    @classmethod
    def of(cls, folder: Path) -> ModelShape:
        """What ``config.json`` says of a model of a single stack of layers.

        Of models with several parts, which are not counted alike, nothing is known.

        Raises:
            FileFormatError: If the file is damaged.
        """
        found = read_json(folder / "config.json")
        several = not isinstance(found, dict) or any(
            (
                isinstance(value, Mapping)
                and (key.endswith("config") or key in ("encoder", "decoder"))
            )
            or key.startswith(("encoder_", "decoder_"))
            or (key == "is_encoder_decoder" and value is True)
            for key, value in found.items()
        )
        if several:
            return cls(None, None)
        kinds = found.get(_KINDS)
        kinds = kinds if isinstance(kinds, list) else []
        without = tuple(number for number, kind in enumerate(kinds) if kind in _WITHOUT_HEADS)
        return cls(_count(found, _LAYERS), _count(found, _HEADS), without)

    def check(self, layers: Sequence[int] | None, heads: Sequence[tuple[int, int]] | None) -> None:
        """Refuses layers and heads that the model does not have.

        Raises:
            InvalidInputError: If it is known that one does not exist.
        """
        named = "layers" if heads is None else "heads"
        for layer in layers or [number for number, _ in heads or ()]:
            if self.layers is None:
                continue
            with_heads = [one for one in range(self.layers) if one not in self.without_heads]
            if layer not in with_heads:
                gap = layer < self.layers
                what = f"layer {layer} has no attention heads"
                raise InvalidInputError(
                    named,
                    what if gap else f"there is no layer {layer}",
                    f"Give some of {listed_layers(with_heads)}",
                )
        for layer, head in heads or ():
            if self.heads is not None and head >= self.heads:
                raise InvalidInputError(
                    named,
                    f"layer {layer} has no head {head}",
                    f"Give heads from 0 to {self.heads - 1}",
                )

    def count(
        self, layers: Sequence[int] | None, heads: Sequence[tuple[int, int]] | None
    ) -> int | None:
        """How many heads are asked for; None where that is not known."""
        if heads is not None:
            return len(heads)
        if self.heads is None or (layers is None and self.layers is None):
            return None
        every = (self.layers or 0) - len(self.without_heads)
        return self.heads * (every if layers is None else len(layers))


def _count(found: Mapping[str, Any], names: Sequence[str]) -> int | None:
    given = next((found[name] for name in names if name in found), None)
    return given if type(given) is int and given > 0 else None
