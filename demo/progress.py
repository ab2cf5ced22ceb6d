"""A bar in a terminal, for what takes longer than two seconds."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import TypeVar

Item = TypeVar("Item")

DELAY = 2  # seconds


def bar(items: Iterable[Item], total: int, text: str) -> Iterable[Item]:
    """The items, with a bar where tqdm is installed.

    Args:
        items: what takes the time.
        total: how many they are.
        text: stands before the bar.
    """
    if find_spec("tqdm") is None:
        return items
    from tqdm import tqdm

    shown: Iterable[Item] = tqdm(items, text, total, delay=DELAY, disable=None)
    return shown
