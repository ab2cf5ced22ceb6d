"""Tables of HTML for notebooks: text is escaped, and readable on a light and a dark page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

MOST = 50
"""Rows that are shown."""

_TABLE = "border-collapse:collapse;margin:4px 0;color:inherit;font-size:inherit"
_CELL = "padding:2px 12px 2px 0;border:0;background:none;color:inherit;"


class Markup(str):
    """HTML that isn't escaped in a cell."""

    __slots__ = ()


def html_table(
    title: str, head: Sequence[str], rows: Sequence[Sequence[object]], notes: Sequence[str] = ()
) -> str:
    """A title, a table and notes. Integers are right-aligned; only the first rows are shown."""
    sides = ["right" if isinstance(cell, int) else "left" for cell in next(iter(rows), ())]
    lines = [_row("th", head, sides)] if head and rows else []
    lines += [_row("td", row, sides) for row in rows[:MOST]]
    hidden = [f"and {len(rows) - MOST:,} more"] if len(rows) > MOST else []
    below = "".join(f"<div>{escape(note)}</div>" for note in (*hidden, *notes))
    table = f'<table style="{_TABLE}">{"".join(lines)}</table>'
    return f"<div><div><b>{escape(title)}</b></div>{table if lines else ''}{below}</div>"


def _row(tag: str, cells: Sequence[object], sides: Sequence[str]) -> str:
    style = _CELL + ("border-bottom:1px solid rgba(128,128,128,0.5);" if tag == "th" else "")
    shown = (
        f'<{tag} style="{style}text-align:{side}">{_inner(cell)}</{tag}>'
        for cell, side in zip(cells, sides, strict=True)
    )
    return f"<tr>{''.join(shown)}</tr>"


def _inner(cell: object) -> str:
    if isinstance(cell, Markup):
        return cell
    return escape(f"{cell:,}" if isinstance(cell, int) else str(cell))
