"""The colours of the tab, for pictures and notebooks: those of `frontend/src/draw/theme.ts`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Theme:
    """Colours as hex text."""

    movement: tuple[str, str, str]  # low, middle and high end of the movement scale
    states: tuple[str, ...]  # by state code, "" for no data
    hatch: str
    violated: str
    panel: str
    text: str
    muted: str
    line: str
    dot: str


LIGHT = Theme(
    movement=("#ffdc9c", "#f2902f", "#b8380a"),
    states=("", "#f2902f", "#4a0f4e", "#93bde4", "#2459a6", "#eceef1", "#1e3b2c", "#149476"),
    hatch="#d3d7dc",
    violated="#d466ff",
    panel="#ffffff",
    text="#202124",
    muted="#5f6368",
    line="#e0e0e0",
    dot="#c3c7cc",
)

DARK = Theme(
    movement=("#85481a", "#e07d22", "#ffc65e"),
    states=("", "#e07d22", "#ffffff", "#7fb2e0", "#2f63b5", "#3e4043", "#c3e1b4", "#988f88"),
    hatch="#55585c",
    violated="#ff99ff",
    panel="#303030",
    text="#ffffff",
    muted="#bdbdbd",
    line="#4c4c4c",
    dot="#6b6e72",
)
