"""Seeded fuzzers: random and damaged input, and checks that share nothing with what they check."""
