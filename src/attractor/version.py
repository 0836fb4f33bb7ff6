"""The version of this library, in one place."""

__version__ = "0.1.0"
