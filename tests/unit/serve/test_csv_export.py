from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from tb_pastnet.serve.views.csv_export import OVERVIEW, harmless, overview_rows, table
from tb_pastnet.serve.views.rows import Row


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
    text = table(OVERVIEW, overview_rows(np.array([9]), [(name, 15, row)]))
    assert list(csv.DictReader(io.StringIO(text, newline=""))) == [
        dict(
            zip(
                OVERVIEW,
                ["9", name, "15", "1", "2", "3", "4", "5", "6", "7", ""],
                strict=True,
            )
        )
    ]
