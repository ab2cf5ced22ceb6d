from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from tb_pastnet.serve.views.csv_export import (
    OVERVIEW,
    LayerLines,
    harmless,
    overview_rows,
    table,
)
from tb_pastnet.serve.views.rows import Row
from tb_pastnet.serve.views.sparsity import Pruned


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
