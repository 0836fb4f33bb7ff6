"""Configurations of transformers: frozen dataclasses, checked, stored as JSON."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from attractor.support.checks import check_choice, check_count, check_number
from attractor.support.errors import InvalidInputError

_MOST_BLOCKS = 1024
_MOST = 2**24


@dataclass(frozen=True)
class TransformerConfig:
    """Settings of every transformer of this package.

    Attributes:
        width: Numbers of a token between blocks.
        blocks: Number of blocks.
        heads: Heads of a block; each has ``width / heads`` numbers.
        hidden: Hidden units of the perceptron of a block.
        dropout: Probability with which a number is dropped in training.
    """

    kind: ClassVar[str]

    width: int
    blocks: int
    heads: int
    hidden: int
    dropout: float

    @property
    def head_size(self) -> int:
        """Numbers of a query or key of one head."""
        return self.width // self.heads

    @property
    def outputs(self) -> int:
        """Number of logits."""
        raise NotImplementedError

    def to_json(self) -> str:
        """The config as a JSON object, with the kind of model under ``"model"``."""
        return json.dumps({"model": self.kind, **dataclasses.asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads what ``to_json`` wrote.

        Raises:
            InvalidInputError: If the text is no config of this kind of model.
        """
        try:
            values = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInputError("text", f"it is no JSON ({error})", "Give to_json()") from error
        if not isinstance(values, dict) or values.pop("model", None) != cls.kind:
            raise InvalidInputError(
                "text", f"it is no config of a {cls.kind}", f'Give "model": "{cls.kind}"'
            )
        known = {field.name for field in dataclasses.fields(cls)}
        if unknown := sorted(values.keys() - known):
            raise InvalidInputError(
                "text", f"{', '.join(unknown)} is not known", f"Give {', '.join(sorted(known))}"
            )
        return cls(**values)

    def _check(self, *counts: str) -> None:
        """Checks the shared settings and counts of a subclass; stores plain numbers."""
        for name in ("width", "heads", "hidden", *counts):
            self._put(name, check_count(name, getattr(self, name), 1, _MOST))
        self._put("blocks", check_count("blocks", self.blocks, 1, _MOST_BLOCKS))
        self._put("dropout", _check_dropout("dropout", self.dropout))
        if self.width % self.heads:
            raise InvalidInputError(
                "heads",
                f"{self.heads} heads do not divide a width of {self.width}",
                "Give a divisor of the width",
            )

    def _put(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


@dataclass(frozen=True)
class TextTransformerConfig(TransformerConfig):
    """Configuration of a ``TextTransformer``; the defaults are the published sizes.

    Attributes:
        vocabulary: Number of different tokens.
        length: Most tokens of a text.
        width: Numbers of a token between blocks.
        blocks: Number of blocks.
        heads: Heads of a block; each has ``width / heads`` numbers.
        hidden: Hidden units of the perceptron of a block.
        dropout: Probability with which a number is dropped in training.
        classes: Number of classes; two have one logit, more have one each.
        normalization: ``"post"``: each block normalizes what it adds up; ``"pre"``: each part of a
            block normalizes what it reads, and the read-out does.
        read_out: ``"first"``: the vector at the first position; ``"masked_mean"``: the mean over
            real tokens; ``"mean"``: over all positions, padding with them.

    Raises:
        InvalidInputError: If a value cannot be used.
    """

    kind: ClassVar[str] = "TextTransformer"

    vocabulary: int = 30522
    length: int = 512
    width: int = 384
    blocks: int = 6
    heads: int = 6
    hidden: int = 1536
    dropout: float = 0.2
    classes: int = 2
    normalization: str = "post"
    read_out: str = "first"

    def __post_init__(self) -> None:
        """Checks every value."""
        self._check("vocabulary", "length")
        self._put("classes", check_count("classes", self.classes, 2, _MOST))
        check_choice("normalization", self.normalization, ("post", "pre"))
        check_choice("read_out", self.read_out, ("first", "masked_mean", "mean"))

    @property
    def outputs(self) -> int:
        """Number of logits."""
        return 1 if self.classes == 2 else self.classes


@dataclass(frozen=True)
class VisionTransformerConfig(TransformerConfig):
    """Configuration of a ``VisionTransformer``; the defaults are the published sizes.

    Attributes:
        image: Rows and columns of pixels.
        channels: Numbers of a pixel.
        patch: Rows and columns of a patch.
        classes: Number of classes, each with a logit.
        width: Numbers of a token between blocks.
        blocks: Number of blocks.
        heads: Heads of a block; each has ``width / heads`` numbers.
        hidden: Hidden units of the perceptron of a block.
        dropout: Probability with which a number is dropped within a block in training.
        embedding_dropout: The same for what enters the first block.

    Raises:
        InvalidInputError: If a value cannot be used.
    """

    kind: ClassVar[str] = "VisionTransformer"

    image: tuple[int, int] = (48, 48)
    channels: int = 3
    patch: int = 4
    classes: int = 10
    width: int = 512
    blocks: int = 6
    heads: int = 8
    hidden: int = 512
    dropout: float = 0.1
    embedding_dropout: float = 0.1

    def __post_init__(self) -> None:
        """Checks every value."""
        self._check("channels", "patch")
        self._put("classes", check_count("classes", self.classes, 2, _MOST))
        dropout = _check_dropout("embedding_dropout", self.embedding_dropout)
        self._put("embedding_dropout", dropout)
        if not isinstance(self.image, tuple | list) or len(self.image) != 2:
            raise InvalidInputError(
                "image", f"{self.image!r} is no pair", "Give rows and columns, such as (28, 28)"
            )
        self._put("image", tuple(check_count("image", side, 1, _MOST) for side in self.image))
        if any(side % self.patch for side in self.image):
            raise InvalidInputError(
                "patch",
                f"{self.patch} does not divide an image of {self.image[0]} x {self.image[1]}",
                "Give a common divisor of both sides",
            )

    @property
    def outputs(self) -> int:
        """Number of logits."""
        return self.classes

    @property
    def patches(self) -> int:
        """Number of patches of an image."""
        return (self.image[0] // self.patch) * (self.image[1] // self.patch)


def _check_dropout(argument: str, value: Any) -> float:
    return check_number(argument, value, least=0.0, below=1.0, example=0.1)
