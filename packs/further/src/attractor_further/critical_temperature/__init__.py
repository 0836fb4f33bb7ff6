"""From which scale of its scores on a row is concentrated."""

from attractor.papers import Paper

PAPER = Paper(
    "critical-temperature",
    "A Unified Framework for Critical Scaling of Inverse Temperature in Self-Attention",
    "Hayase, Tomohiro and Karakida, Ryo",
    2026,
    "2605.12697",
)
