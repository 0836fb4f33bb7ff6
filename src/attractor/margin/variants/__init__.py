"""Margin problems of other training: with a head, several tokens a row, factorized."""
