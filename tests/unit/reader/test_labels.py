"""Columns are what DataFrames and exports are made of; no text is written out a row."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tb_pastnet as pastnet
from tb_pastnet.reader.tables import Columns, Labels, labels, occurring, repeated
from tests.contract.test_http_api import sample_log

TEXTS = st.lists(st.sampled_from(["moving", "frozen", "=x", "", "層"]), max_size=9)


def texts(column: Labels) -> list[str]:
    assert len(set(column.names)) == len(column.names)
    return [column.names[code] for code in column.codes.tolist()]


@given(written=TEXTS)
def test_labels_are_the_texts(written: list[str]) -> None:
    column = labels(written)
    assert texts(column) == written
    assert column.names == tuple(dict.fromkeys(written))
    assert texts(repeated(column, 3)) == written * 3


@given(written=TEXTS, unused=TEXTS)
def test_what_occurs_is_named_in_order(written: list[str], unused: list[str]) -> None:
    names = tuple(dict.fromkeys([*unused, *written]))
    column = occurring(Labels(names, np.array([names.index(one) for one in written], np.uint8)))
    assert texts(column) == written
    assert column.names == tuple(sorted(set(written)))
    assert column.codes.dtype == np.int32


def test_they_need_no_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample_log(tmp_path)
    monkeypatch.setitem(sys.modules, "pandas", None)
    run = pastnet.read(tmp_path).runs["dense"]
    overview, kernel = run.overview(), run.layers["conv1"]

    def told(columns: Columns, name: str) -> list[str]:
        column = columns[name]
        assert isinstance(column, Labels)
        return texts(column)

    assert told(overview.columns(), "layer") == list(overview.layers) * len(overview.steps)
    places = [place.name for place in run.function.places]
    assert told(run.function.columns(), "place") == places * len(run.function.steps)
    for threshold in (0.0, 1e9):
        states = kernel.states(threshold).ravel().tolist()
        assert told(kernel.columns(threshold), "state") == states
