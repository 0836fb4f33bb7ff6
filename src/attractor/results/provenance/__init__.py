"""Where a result comes from: what was run, on which data, with what, so that it can be run again.

A provenance lies inside the file it is about, whatever its kind, and holds no time and no path:
the same run gives the same bytes.
"""

from attractor.results.provenance.embedding import SUFFIXES, embed, embed_all, read_provenance
from attractor.results.provenance.record import KINDS, Provenance, differences

__all__ = [
    "KINDS",
    "SUFFIXES",
    "Provenance",
    "differences",
    "embed",
    "embed_all",
    "read_provenance",
]
