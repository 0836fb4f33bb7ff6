"""Attention heads watched while the user's own loop trains them, in PyTorch, JAX or NumPy."""

from attractor.monitor._watched_heads import watched_heads
from attractor.monitor.head import WatchedHead
from attractor.monitor.head_monitor import HeadMonitor, load_records
from attractor.monitor.record import HeadRecord, RecordStatus
from attractor.settings import all_in_own_settings

__all__ = [
    "HeadMonitor",
    "HeadRecord",
    "RecordStatus",
    "WatchedHead",
    "load_records",
    "watched_heads",
]

all_in_own_settings(__name__)
