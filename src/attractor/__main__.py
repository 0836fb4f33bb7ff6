"""``python -m attractor`` is the command ``attractor``."""

from attractor.cli import main

main()
