"""What the colours of the pictures stand for, in the light theme."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

FLAT = {
    "#93bde4": "quiet",
    "#2459a6": "frozen",
    "#eceef1": "pruned",
    "#d3d7dc": "pruned",
    "#4a0f4e": "reactivated",
    "#d466ff": "violated",
    "#c3c7cc": "no data",
    "": "no data",
}
"""Every other colour is a tint of moving."""


def named(colours: Iterable[str]) -> Counter[str]:
    """Pixels by what their colour stands for."""
    return Counter(FLAT.get(colour, "moving") for colour in colours)
