"""The store of a sweep: its arrays, what they depend on, checks, and how far it is."""
