"""Arrays, Bessel functions and square roots that laws are computed with."""
