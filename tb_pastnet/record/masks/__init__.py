"""Masks on single weights, for every framework: commands, what is saved, and what is recorded."""
