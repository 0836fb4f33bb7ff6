"""Reading the containers that files come in, whoever wrote them: one guarded reader for each."""

from attractor.support.containers.damage import parsing, read_whole
from attractor.support.containers.json_text import leaves, parse_json, read_json
from attractor.support.containers.netcdf import netcdf_text, read_group, read_groups, read_netcdf
from attractor.support.containers.npz import StoredArrays
from attractor.support.containers.tensors import StoredTensors
from attractor.support.containers.text import read_text_blocks

__all__ = [
    "StoredArrays",
    "StoredTensors",
    "leaves",
    "netcdf_text",
    "parse_json",
    "parsing",
    "read_group",
    "read_groups",
    "read_json",
    "read_netcdf",
    "read_text_blocks",
    "read_whole",
]
