"""The files by which a folder of ours is known, which may then be replaced or resumed."""

from __future__ import annotations

REPORT = "report.html"
"""The page of a report; a folder that holds one may be replaced by a newer report."""
CHECKPOINT = "attractor-checkpoint.json"
"""The identity of the run of a checkpoint folder."""
AUDIT = "audit.nc"
"""What an audit of heads found, as labeled arrays; its folder may be replaced by a newer audit."""
BASINS = "shares.nc"
"""Where random starts ended; its folder may be replaced by a newer one of ``attractor basins``."""
