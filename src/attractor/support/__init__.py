"""What everything stands on: errors, arguments, precision, randomness, threads, files."""
