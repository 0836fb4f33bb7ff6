"""Gradients of the loss that keep their magnitude beside them, however small they get."""
