"""Files and folders that appear whole or not at all, and checks of where they may be written."""

from attractor.support.storage.atomic import (
    append_line,
    atomic_directory,
    atomic_file,
    new_directory,
    save_netcdf,
    write_file,
)
from attractor.support.storage.kept import kept_beside, owned_folder
from attractor.support.storage.paths import (
    Input,
    OutputFile,
    OutputFolder,
    check_paths,
    check_replaceable,
    check_writable,
    existing_file,
)
from attractor.support.storage.streamed import StreamedNetCDF, writing_netcdf
from attractor.support.storage.workplace import discard_unfinished

__all__ = [
    "Input",
    "OutputFile",
    "OutputFolder",
    "StreamedNetCDF",
    "append_line",
    "atomic_directory",
    "atomic_file",
    "check_paths",
    "check_replaceable",
    "check_writable",
    "discard_unfinished",
    "existing_file",
    "kept_beside",
    "new_directory",
    "owned_folder",
    "save_netcdf",
    "write_file",
    "writing_netcdf",
]
