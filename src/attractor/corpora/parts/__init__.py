"""Parts of a corpus: what is realizable, what conflicts, what a linear decoder sees."""
