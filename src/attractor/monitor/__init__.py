"""Attention heads watched while the user's own loop trains them, in PyTorch, JAX or NumPy."""

from attractor.monitor.head import WatchedHead
from attractor.monitor.head_monitor import HeadMonitor
from attractor.monitor.record import HeadRecord, RecordStatus
from attractor.monitor.stored import load_records

__all__ = ["HeadMonitor", "HeadRecord", "RecordStatus", "WatchedHead", "load_records"]
