"""Selections as candidates: all of a small data set, and whether training can end there."""
