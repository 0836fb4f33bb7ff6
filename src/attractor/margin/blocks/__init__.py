"""Margin problems in norms of blocks: block by block where no constraint joins any."""
