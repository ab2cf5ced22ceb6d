"""Every glyph of the gallery is drawn as its golden picture shows it; `UPDATE_GOLDEN=1` writes those anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.e2e.browser import clean, drive
from tests.pictures import UPDATE, against, differing, pixels, read_png, stacked, write_png

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "glyphs"
TOLERANCE = {"raster": 0, "vector": 40, "element": 40}
"""Rasters are computed; what the browser smooths may be smoothed otherwise by the next one."""


@pytest.fixture(scope="module")
def drawn() -> dict[str, Any]:
    """Each glyph in each theme."""
    found: dict[str, Any] = clean(drive("", "glyphs"))
    return found


def picture(told: dict[str, Any]) -> np.ndarray:
    """Ratio 1 above ratio 2."""
    return stacked([pixels(size) for size in told["sizes"]])


def test_each_glyph_equals_its_golden_picture(drawn: dict[str, Any], tmp_path: Path) -> None:
    wrong = [
        against(GOLDEN / f"{name}.png", picture(told), TOLERANCE[told["kind"]], tmp_path)
        for name, told in drawn.items()
    ]
    assert [text for text in wrong if text] == []


def test_each_golden_picture_has_its_glyph(drawn: dict[str, Any]) -> None:
    left = [path for path in GOLDEN.iterdir() if path.stem not in drawn]
    if UPDATE:
        for path in left:
            path.unlink()
    else:
        assert left == []
    assert {told["kind"] for told in drawn.values()} == set(TOLERANCE)


def test_each_glyph_shows_something_of_its_own(drawn: dict[str, Any]) -> None:
    """A fixture that draws nothing, or what another draws, tests nothing."""
    seen: dict[bytes, str] = {}
    for name, told in drawn.items():
        found = picture(told)
        if name.rpartition(".")[0] != "bars-no-record":
            assert len(np.unique(found.reshape(-1, 4), axis=0)) > 1, name
            assert seen.setdefault(found.tobytes(), name) == name


@pytest.mark.parametrize("kind", TOLERANCE)
def test_one_pixel_and_one_shifted_row_are_found(drawn: dict[str, Any], kind: str) -> None:
    names = {
        "raster": "heatmap-both.light",
        "vector": "lines-runs.light",
        "element": "run-markers.light",
    }
    golden = picture(drawn[names[kind]])
    assert drawn[names[kind]]["kind"] == kind
    limit = TOLERANCE[kind]
    assert differing(golden, golden, limit) == 0
    one = golden.copy()
    one[10, 20, 1] ^= 0x80 if limit else 1
    assert differing(one, golden, limit) == 1
    row = next(
        y
        for y in range(len(golden))
        if differing(golden[y : y + 1], np.roll(golden[y : y + 1], 1, axis=1), limit)
    )
    moved = golden.copy()
    moved[row] = np.roll(golden[row], 1, axis=0)
    assert differing(moved, golden, limit) > 0
    assert differing(golden[1:], golden, limit) > 0  # another size


def test_pictures_are_read_as_they_were_written(tmp_path: Path) -> None:
    made = np.random.default_rng(0).integers(0, 256, (5, 7, 4), np.uint8)
    write_png(tmp_path / "a" / "b.png", made)
    np.testing.assert_array_equal(read_png(tmp_path / "a" / "b.png"), made)


def test_a_picture_without_its_golden_one_says_how_to_write_it(tmp_path: Path) -> None:
    made = np.zeros((2, 2, 4), np.uint8)
    text = against(tmp_path / "x.png", made, 0, tmp_path)
    assert (
        UPDATE or text == "x.png isn't there: look at the picture, then write it by UPDATE_GOLDEN=1"
    )
