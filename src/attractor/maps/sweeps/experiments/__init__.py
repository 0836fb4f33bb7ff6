"""The experiments of the library, one a file: ``run``, and a function that makes the experiment."""
