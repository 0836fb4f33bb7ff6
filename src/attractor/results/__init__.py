"""Results of computations: recorded runs, results that print, and the files of both."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.results.consistency import check_records as check_records
    from attractor.results.labeled_file import load_data as load_data, save_data as save_data
    from attractor.results.plotted import Plotted as Plotted
    from attractor.results.printed import (
        Described as Described,
        PlainText as PlainText,
        Printed as Printed,
        Rows as Rows,
        Summary as Summary,
        finite_or_none as finite_or_none,
        plain_table as plain_table,
    )
    from attractor.results.recorded_run import (
        AXES as AXES,
        RecordedRun as RecordedRun,
        axis_of as axis_of,
    )
    from attractor.results.run_file import (
        StoredRun as StoredRun,
        reading_run as reading_run,
        save_run as save_run,
    )

import_on_first_use(__name__)
