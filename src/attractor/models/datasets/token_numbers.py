"""The numbers of tokens that are no words: padding, and the first of every text."""

PADDING, FIRST = 0, 1
