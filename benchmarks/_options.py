"""The command line that all benchmarks share."""

from __future__ import annotations

import argparse

from benchmarks._pairs import PAIRS


def parser(name: str, text: str | None) -> argparse.ArgumentParser:
    """A parser with `--smoke`.

    Args:
        name: of the benchmark.
        text: its module's docstring.
    """
    made = argparse.ArgumentParser(prog=f"benchmarks/{name}.py", description=text)
    made.add_argument("--smoke", action="store_true", help="tiny sizes: only see that it works")
    return made


def with_pairs(name: str, text: str | None) -> argparse.ArgumentParser:
    """One that also says how often things are timed: see `pairs_of`.

    Args:
        name: of the benchmark.
        text: its module's docstring.
    """
    made = parser(name, text)
    made.add_argument("--pairs", type=int, default=PAIRS, help=f"default {PAIRS}")
    return made


def pairs_of(chosen: argparse.Namespace) -> int:
    """How often things are timed."""
    return 2 if chosen.smoke else int(chosen.pairs)
