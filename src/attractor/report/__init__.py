"""Reports: a self-contained page, its figures, and the numbers behind them."""

from typing import TYPE_CHECKING

from attractor.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.report._paired import Paired as Paired, paired as paired
    from attractor.report.comparison import labeled as labeled
    from attractor.report.constraints import Conflict as Conflict, conflicts as conflicts
    from attractor.report.write import write_report as write_report

import_on_first_use(__name__)
