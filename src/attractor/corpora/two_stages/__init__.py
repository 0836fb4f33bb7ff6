"""Two-stage training on a corpus, and where each stage goes."""
