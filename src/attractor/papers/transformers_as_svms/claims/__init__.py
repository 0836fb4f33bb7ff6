"""Its claims."""
