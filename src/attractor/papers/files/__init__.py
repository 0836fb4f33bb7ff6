"""The files of classifier results."""
