"""Next-token prediction with labels that conflict: a direction, and a finite part on cycles."""

from attractor.papers import MECHANICS as PAPER

__all__ = ["PAPER"]
