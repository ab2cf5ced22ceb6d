"""How far a command is, on a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import TextIO, TypeVar

from tb_pastnet.cli.text import fit

Item = TypeVar("Item")

DELAY = 2.0
"""Seconds before a bar is shown."""

_LONGEST = 40


class Bars:
    """Shows a bar on a stream where that is a terminal and tqdm is installed, else nothing."""

    def __init__(self, error: TextIO) -> None:
        self._error = error
        self._shown = error.isatty() and find_spec("tqdm") is not None

    def __call__(self, items: Iterable[Item], text: str, total: int) -> Iterable[Item]:
        """The same items, counted as they are taken; `text` says what is done with them."""
        if not self._shown:
            return items
        from tqdm import tqdm

        bar: Iterable[Item] = tqdm(
            items,
            fit(text, _LONGEST),
            total,
            leave=False,
            file=self._error,
            delay=DELAY,
            bar_format="{desc}: {percentage:3.0f}% |{bar:30}| {elapsed}",
        )
        return bar
