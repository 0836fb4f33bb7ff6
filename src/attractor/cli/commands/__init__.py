"""The commands of the core: solve, train, verify, check, and examples."""
