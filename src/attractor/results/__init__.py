"""Results of computations: recorded runs, results that print, and the files of both."""

from attractor.results.consistency import check_records
from attractor.results.labeled_file import load_data, save_data
from attractor.results.plotted import Plotted
from attractor.results.printed import (
    Described,
    PlainText,
    Printed,
    Rows,
    Summary,
    finite_or_none,
    plain_table,
)
from attractor.results.recorded_run import AXES, RecordedRun, axis_of
from attractor.results.run_file import StoredRun, reading_run, save_run

__all__ = [
    "AXES",
    "Described",
    "PlainText",
    "Plotted",
    "Printed",
    "RecordedRun",
    "Rows",
    "StoredRun",
    "Summary",
    "axis_of",
    "check_records",
    "finite_or_none",
    "load_data",
    "plain_table",
    "reading_run",
    "save_data",
    "save_run",
]
