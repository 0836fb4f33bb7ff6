"""Embeddings of tokens and contexts, with margins of their own."""
