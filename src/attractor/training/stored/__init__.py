"""Runs on disk: what a checkpoint holds, and how a killed run goes on."""
