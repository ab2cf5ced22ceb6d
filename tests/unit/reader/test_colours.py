"""The colours of Python are those of the tab."""

from __future__ import annotations

import re
from dataclasses import asdict

import pytest

from tb_pastnet.reader.colours import DARK, LIGHT
from tools.steps import ROOT

SOURCE = (ROOT / "frontend" / "src" / "draw" / "theme.ts").read_text("utf-8")
EITHER = re.compile(r"^    (\w+): either(?:<Stops>)?\((.*?)\),$", re.M | re.S)


@pytest.mark.parametrize(("theme", "place"), [(LIGHT, 0), (DARK, 1)])
def test_they_are_those_of_the_page(theme, place):
    page = {}
    for name, values in EITHER.findall(SOURCE):
        colours = re.findall(r'"(#[0-9a-f]{6}|)"', values)
        half = len(colours) // 2
        part = tuple(colours[:half] if place == 0 else colours[half:])
        page[name] = part if half > 1 else part[0]
    assert len(page) > 10
    assert asdict(theme) == {name: page[name] for name in asdict(theme)}
