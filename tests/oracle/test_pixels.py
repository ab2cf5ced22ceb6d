"""What is rare is on the screen: each record that has it shows its colour, at every width."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.e2e.browser import clean
from tests.oracle.cases import WIDTHS
from tests.oracle.plain import REACTIVATED
from tests.oracle.shown import Log, shown

pytestmark = pytest.mark.usefixtures("browser")
COLOURS = {"reactivated": 0x4A0F4E, "violated": 0xD466FF, "nonfinite": 0x149476}
"""Of the light theme."""


def look(log: Log) -> int:
    """Looks at all records that have something rare. Returns how many."""
    seen = clean(log.tab.drive("oraclePixels", widths=WIDTHS, colours=COLOURS, th=1e-4))
    first, end = log.range
    count, lost = 0, []
    for width in map(str, WIDTHS):
        strips = {(one["run"], one["layer"]): one for one in seen[width]}
        for run, oracle in log.oracles.items():
            for layer, own in oracle.layers.items():
                strip = strips[run, layer]
                rare = {
                    "reactivated": np.any(own.states(1e-4) == REACTIVATED, axis=1),
                    "violated": own.violated.any(axis=1),
                    "nonfinite": (~own.finite).any(axis=1),
                }
                for kind, flags in rare.items():
                    for step in own.steps[np.flatnonzero(flags)].tolist():
                        at = math.floor((step - first) / (end - first) * strip["width"])
                        count += 1
                        if not {at - 1, at} & set(strip["seen"][kind]):
                            lost.append((width, run, layer, kind, step))
    assert lost == []
    return count


def test_what_is_rare_is_on_the_screen(tmp_path: Path) -> None:
    with shown(3, tmp_path) as log:
        assert look(log) > 0


@pytest.mark.prove
def test_what_is_rare_in_many_logs_is_on_the_screen(
    tmp_path: Path, figure: Callable[[str], None]
) -> None:
    count = 0
    for seed in range(15):
        with shown(seed, tmp_path) as log:
            count += look(log)
    figure(f"15 logs at 6 widths: {count:,} records with something rare, each with its colour")
