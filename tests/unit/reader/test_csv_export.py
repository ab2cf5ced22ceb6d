from __future__ import annotations

import csv
import io
from types import SimpleNamespace

import numpy as np
import pytest

from tb_pastnet.core import states
from tb_pastnet.reader import csv_export
from tb_pastnet.reader.csv_export import (
    LAYER,
    OVERVIEW,
    LayerLines,
    harmless,
    layer_table,
    overview_rows,
    table,
)
from tb_pastnet.reader.rows import Row
from tb_pastnet.reader.sparsity import Pruned


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_name_never_becomes_a_formula(start: str) -> None:
    assert harmless(start + 'HYPERLINK("http://x")').startswith("'" + start)


@pytest.mark.parametrize("name", ["conv1", "a=b", "ü", "", "1+1"])
def test_an_ordinary_name_stays_as_it_is(name: str) -> None:
    assert harmless(name) == name


def test_names_with_quotes_and_line_breaks_come_back_whole() -> None:
    name = 'a,"b"\r\nc'
    row = Row(
        np.array([[0, 1, 2, 3, 4, 5]], np.uint32),
        np.array([6], np.uint32),
        np.array([7], np.uint32),
        np.array([np.nan], np.float32),
    )
    lines = LayerLines(name, 15, row, Pruned(np.array([8.0]), 18))
    text = table(OVERVIEW, overview_rows(np.array([9]), [lines]))
    assert list(csv.DictReader(io.StringIO(text, newline=""))) == [
        dict(
            zip(
                OVERVIEW,
                ["9", name, "15", "1", "2", "3", "4", "5", "6", "7", "", "8", "18"],
                strict=True,
            )
        )
    ]


def test_pruned_weights_that_arent_known_are_an_empty_cell() -> None:
    none = np.zeros(1, np.uint32)
    row = Row(np.zeros((1, 6), np.uint32), none, none, np.zeros(1, np.float32))
    lines = LayerLines("a", 0, row, Pruned(np.array([np.nan]), 18))
    (found,) = overview_rows(np.array([9]), [lines])
    assert found[-2:] == ["", 18]


@pytest.mark.parametrize("lines", [1, 7, 1 << 14])
@pytest.mark.parametrize(
    ("records", "channels"),
    [
        (range(9), range(3)),
        (range(4, 9), range(1, 2)),
        (range(9, 9), range(3)),
        (range(9), range(0)),
    ],
)
def test_every_cell_of_a_layer_is_that_of_its_code(records, channels, lines, monkeypatch) -> None:
    monkeypatch.setattr(csv_export, "_LINES", lines)
    rng = np.random.default_rng(0)
    codes = rng.integers(-200, 100, (8, 9, 3)).astype(np.int16)
    codes[4, 2] = -32768, 32767, 32766  # 0, infinite, not a number
    told = rng.integers(1, 6, (9, 3)).astype(np.uint8)
    told[5] |= states.VIOLATED
    series = SimpleNamespace(codes=codes, steps=np.arange(9) * 3, past_steps=np.arange(9) * 3 - 1)
    text = "".join(layer_table(series, told, records, channels))
    special = {-32768: "0", 32767: "inf", 32766: ""}

    def shown(code):
        return special[code] if code in special else f"{2 ** (code / 16):.4g}"

    expected = [
        [
            str(at * 3), str(at * 3 - 1), str(channel),
            states.NAMES[told[at, channel] & states.STATE], "1" if at == 5 else "0",
            shown(int(codes[2, at, channel]) - int(codes[1, at, channel])),
            *(shown(int(code)) for code in codes[:, at, channel]),
        ]
        for at in records
        for channel in channels
    ]  # fmt: skip
    assert list(csv.reader(io.StringIO(text, newline=""))) == [list(LAYER), *expected]
