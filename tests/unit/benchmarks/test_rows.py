from __future__ import annotations

import json

import pytest

from benchmarks._rows import INTO, Row, Rows, number, quartiles, read, tables


def test_quartiles_are_those_of_numpy():
    import numpy as np

    values = np.random.default_rng(0).lognormal(size=11).tolist()
    assert quartiles(values) == pytest.approx(np.quantile(values, (0.25, 0.5, 0.75)))
    assert quartiles([3.0]) == (3.0, 3.0, 3.0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (6965.4, "6,965"),
        (5.8, "5.80"),
        (14, "14"),
        (0.01234, "0.0123"),
        (0, "0"),
        (-2.5, "-2.50"),
        (1e-7, "0.000000100"),
    ],
)
def test_numbers_have_three_digits_that_count(value, text):
    assert number(value) == text


def test_a_bar_is_the_most_that_the_median_may_be(monkeypatch):
    monkeypatch.delenv(INTO, raising=False)
    rows = Rows("some")
    rows.add("T", "a", [1, 2, 3], "%", bar=2)
    assert rows.finish() == 0
    rows.add("T", "b", [1, 2.1, 3], "%", bar=2)
    rows.add("T", "c", 5)
    assert [row.met for row in rows] == [True, False, None]
    assert rows.finish() == 1


def test_something_wrong_that_no_bar_says_is_told_too(monkeypatch):
    monkeypatch.delenv(INTO, raising=False)
    assert Rows("some").finish(missed=True) == 1


def test_tables_are_by_title_row_and_column():
    rows = Rows("some")
    rows.add("Shares", "ours", [1, 2, 4], "%", column="CNN", bar=3)
    rows.add("Shares", "theirs", 231.4, "%", column="CNN")
    rows.add("Shares", "ours", [4, 5, 6], "%", column="ResNet", bar=3)
    rows.add("Times", "a|b", 0.5, "ms")
    assert tables(rows) == [
        "**Shares**",
        "",
        "|  | CNN | ResNet |",
        "| --- | --- | --- |",
        "| ours | 2 % (1.50 to 3), bar 3 | 5 % (4.50 to 5.50), bar 3 MISSED |",
        "| theirs | 231 % |  |",
        "",
        "**Times**",
        "",
        "|  |  |",
        "| --- | --- |",
        "| a&#124;b | 0.500 ms |",
    ]


def test_what_cant_be_measured_is_listed_with_its_error():
    rows = Rows("some")
    row = rows.fail("T", "peer", "Traceback\n\nImportError: no torch\n", column="CNN")
    assert (row.value, row.met, row.error) == (None, None, "ImportError: no torch")
    assert row.cell == "not measured: ImportError: no torch"
    assert rows.fail("T", "peer", "").error == "no reason was given"


def test_rows_are_kept_and_read_back(tmp_path, monkeypatch):
    monkeypatch.setenv(INTO, str(tmp_path / "rows.json"))
    rows = Rows("some")
    rows.add("T", "a", [1, 2, 3], "%", column="µ", bar=2)
    rows.fail("T", "b", "why")
    rows.finish()
    body = json.loads((tmp_path / "rows.json").read_text("utf-8"))
    assert body["benchmark"] == "some"
    assert {"machine", "versions", "commit", "seconds"} < set(body)
    assert read(body) == list(rows)
    assert all(isinstance(row, Row) for row in read(body))


def test_a_number_that_is_none_can_not_be_kept(tmp_path, monkeypatch):
    monkeypatch.setenv(INTO, str(tmp_path / "rows.json"))
    rows = Rows("some")
    rows.add("T", "a", float("nan"))
    with pytest.raises(ValueError, match="Out of range float values are not JSON compliant"):
        rows.finish()
