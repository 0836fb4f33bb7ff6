"""Gradient flow: training with infinitely small steps."""

from attractor.training.flow._gradient_flow import gradient_flow

__all__ = ["gradient_flow"]
