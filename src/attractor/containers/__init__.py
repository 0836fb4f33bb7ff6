"""Reading the containers that files come in, whoever wrote them: one guarded reader for each."""

from attractor.containers.damage import parsing, read_whole
from attractor.containers.json_text import leaves, parse_json, read_json
from attractor.containers.netcdf import netcdf_text, read_group, read_groups, read_netcdf
from attractor.containers.npz import StoredArrays
from attractor.containers.tensors import StoredTensors
from attractor.containers.text import read_text_blocks

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
