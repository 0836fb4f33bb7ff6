"""The files of corpora: arrays, and text with a sentence a line."""
