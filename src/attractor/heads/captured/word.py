"""The words that an audit answers in, each with what it means in a line."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Word(StrEnum):
    """A word of an answer.

    Attributes:
        message: What it means, in a line that pages of the library and glossaries of reports share.
    """

    message: str

    def __new__(cls, value: str, message: str) -> Self:
        """The word, known by itself, with its meaning."""
        word = str.__new__(cls, value)
        word._value_ = value
        word.message = message
        return word
