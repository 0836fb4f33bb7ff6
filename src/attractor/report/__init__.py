"""Reports: a self-contained page, its figures, and the numbers behind them."""

from typing import TYPE_CHECKING

from attractor.support.first_use import import_on_first_use

if TYPE_CHECKING:
    from attractor.report.constraints import Conflict as Conflict, conflicts as conflicts
    from attractor.report.write import write_report as write_report

import_on_first_use(__name__)
