"""What is believed of optimizers of attention, and in no paper."""

from attractor.papers import Paper

PAPER = Paper("folklore", "Folklore: what is believed of optimizers of attention")
