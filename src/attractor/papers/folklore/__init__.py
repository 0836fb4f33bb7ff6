"""Folklore, of no paper: what is believed of where optimizers take attention."""
