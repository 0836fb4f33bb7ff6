"""A command, a kind of file and an experiment of one's own."""
