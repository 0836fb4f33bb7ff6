"""Compiled steps: the blocks of trials they train, and the memory they take."""
