"""Reports: a self-contained page, its figures, and the numbers behind them.

Importing this module loads matplotlib; ``import attractor`` does not.
"""

from attractor.report.conflicts import Conflict, conflicts
from attractor.report.digits import SizeResult, write_digits_report
from attractor.report.write import write_report

__all__ = ["Conflict", "SizeResult", "conflicts", "write_digits_report", "write_report"]
