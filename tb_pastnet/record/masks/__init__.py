"""Masks on single weights, for every framework: commands, saving and recording."""
