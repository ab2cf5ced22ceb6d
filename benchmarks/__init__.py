"""Benchmarks: `python3 dev.py bench` runs each file whose name has no leading underscore."""
