"""Tables as CSV: names come back whole, numbers as they are formatted, any number of lines."""

from __future__ import annotations

import csv
import io
from collections import Counter

import numpy as np
import pytest

from tb_pastnet.core import channel_states
from tb_pastnet.core.account import Account
from tb_pastnet.core.statistics import NONFINITE, STATISTICS
from tb_pastnet.reader import tables
from tb_pastnet.reader.layer_view import record_columns
from tb_pastnet.reader.series import RecordSeries
from tb_pastnet.reader.tables import Columns, csv_pieces, harmless, labels


def read(*parts: Columns, **formats: object) -> list[list[str]]:
    text = "".join(csv_pieces(parts, **formats))  # type: ignore[arg-type]
    assert text.endswith("\r\n")
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_name_never_becomes_a_formula(start: str) -> None:
    assert harmless(start + 'HYPERLINK("http://x")').startswith("'" + start)


@pytest.mark.parametrize("name", ["conv1", "a=b", "ü", "", "1+1"])
def test_an_ordinary_name_stays_as_it_is(name: str) -> None:
    assert harmless(name) == name


def test_numbers_are_whole_or_formatted_and_empty_where_unknown() -> None:
    numbers = [tables.number(0.123456, ".4g"), *map(tables.number, (3.0, np.inf, np.nan))]
    assert numbers == ["0.1235", "3", "inf", ""]


def test_names_with_quotes_and_line_breaks_come_back_whole() -> None:
    name = 'a,"b"\r\nc'
    columns = {"name": labels([name, "=x"]), "count": np.array([1, 2])}
    assert read(columns) == [["name", "count"], [name, "1"], ["'=x", "2"]]


def test_each_column_has_its_format_and_what_isnt_known_is_empty() -> None:
    columns = {
        "weights": np.array([np.nan, 123456.0, 7.0]),
        "delta": np.array([0.123456, np.inf, np.nan], np.float32),
        "violated": np.array([True, False, False]),
    }
    assert read(columns, digits=".4g", formats={"weights": ".0f"})[1:] == [
        ["", "0.1235", "1"],
        ["123456", "inf", "0"],
        ["7", "", "0"],
    ]
    # The fewest digits that tell a number of single precision.
    assert [line[:2] for line in read(columns)[1:]] == [
        ["", "0.123456"],
        ["123456", "inf"],
        ["7", ""],
    ]


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
def test_every_cell_of_a_layer_is_that_of_its_code(
    records: range, channels: range, lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_ROWS", lines)
    rng = np.random.default_rng(0)
    codes = rng.integers(-200, 100, (len(STATISTICS), 9, 3)).astype(np.int16)
    codes[4, 2] = -32768, 32767, 32766  # 0, infinite, not a number
    codes[NONFINITE] = -32768
    codes[NONFINITE, 3, 1] = -32766  # 2
    told = rng.integers(1, 6, (9, 3)).astype(np.uint8)
    told[5] |= channel_states.VIOLATED
    steps, none = np.arange(9) * 3, np.zeros(9)
    series = RecordSeries(
        steps, steps - 1, none, none, none.astype(int), codes, Account(), Counter()
    )
    part = slice(records.start, records.stop), slice(channels.start, channels.stop)
    columns = record_columns(series.part(*part), told[part], channels.start)
    special = {-32768: "0", 32767: "inf", 32766: ""}

    def shown(code: int) -> str:
        return special[code] if code in special else f"{2 ** (code / 16):.4g}"

    expected = [
        [
            str(at * 3), str(at * 3 - 1), str(channel),
            channel_states.NAMES[told[at, channel] & channel_states.STATE], "1" if at == 5 else "0",
            "" if (at, channel) == (3, 1) else shown(
                int(codes[2, at, channel]) - int(codes[1, at, channel])
            ),
            *(
                shown(int(code)) if row != NONFINITE else f"{int(code) + 32768:.4g}"
                for row, code in enumerate(codes[:, at, channel])
            ),
        ]
        for at in records
        for channel in channels
    ]  # fmt: skip
    head = ["step", "past_step", "channel", "state", "violated", "relative_delta", *STATISTICS]
    assert read(columns, digits=".4g") == [head, *expected]
    assert read(columns, columns, digits=".4g") == [head, *expected, *expected]
