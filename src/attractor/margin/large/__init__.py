"""Margin problems with too many constraints for a Gram matrix."""
