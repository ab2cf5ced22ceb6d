"""DataFrames hold what the CSV export holds, in the same columns and at full precision."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.reader.log import Log
from tests import event_files as files
from tests import probed
from tests.contract.test_http_api import sample_log
from tests.tensorboards import board
from tests.unit.reader.test_records import CODES, STEPS

FRAMES: dict[str, Callable[[Log], Any]] = {
    "log": lambda log: log.to_dataframe(),
    "run": lambda log: log.runs["dense"].to_dataframe(),
    "overview": lambda log: log.runs["dense"].overview().to_dataframe(),
    "layer": lambda log: log.runs["dense"].layers["conv1"].to_dataframe(),
    "function": lambda log: log.runs["dense"].function.to_dataframe(),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_without_pandas_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frame: str
) -> None:
    sample_log(tmp_path)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        ImportError,
        match=r"Could not make a DataFrame: expected pandas to be installed, got none\. "
        r'Run: pip install "tb-pastnet\[pandas\]"',
    ):
        FRAMES[frame](pastnet.read(tmp_path))


@pytest.fixture
def pandas() -> Any:
    return pytest.importorskip("pandas", reason='pip install "tb-pastnet[pandas]" for these')


@pytest.mark.parametrize(
    ("frame", "query"),
    [("run", {}), ("layer", {"layer": "conv1"}), ("function", {"function": 1})],
)
def test_the_columns_are_those_of_the_export(
    tmp_path: Path, pandas: Any, frame: str, query: dict[str, Any]
) -> None:
    sample_log(tmp_path)
    with board(tmp_path, "fast") as here:
        text = here.get("/export.csv", run="dense", **query).get_data(as_text=True)
    right = pandas.read_csv(io.StringIO(text))
    found = FRAMES[frame](pastnet.read(tmp_path))
    assert list(found.columns) == list(right.columns)
    assert len(found) == len(right)
    for name in right.columns:
        if right[name].dtype.kind in "if":
            np.testing.assert_allclose(found[name].astype(float), right[name], rtol=6e-4)
        else:
            assert found[name].astype(str).tolist() == right[name].astype(str).tolist()


def test_a_layer_has_a_row_for_each_record_and_channel(tmp_path: Path, pandas: Any) -> None:
    files.write_run(tmp_path, steps=range(1, 31))
    layer = pastnet.read(tmp_path).runs["a"].layers["conv1"]
    found = layer.to_dataframe(threshold=1e9)
    assert len(found) == 30 * 4
    by_channel = found.pivot_table(index="step", columns="channel", values="norm")
    np.testing.assert_array_equal(by_channel.to_numpy(), layer.norm)
    assert found["state"].dtype == "category"
    assert found["violated"].dtype == bool
    states = found["state"].to_numpy().reshape(30, 4)
    np.testing.assert_array_equal(states, layer.states(threshold=1e9))
    assert layer.to_dataframe()["state"].eq("moving").all()


def test_numbers_of_weights_are_whole(tmp_path: Path, pandas: Any) -> None:
    writer = files.LineageWriter(tmp_path)
    writer.describe(0)
    writer.records(STEPS, {"conv1/kernel": CODES})
    layer = pastnet.read(tmp_path).runs["a"].layers["conv1"]
    assert sorted(layer.to_dataframe()["nonfinite"].unique()) == [0, 2, 30]


def test_a_log_tells_its_runs_apart(tmp_path: Path, pandas: Any) -> None:
    sample_log(tmp_path)
    log = pastnet.read(tmp_path)
    found = log.to_dataframe()
    assert found.columns[0] == "run"
    assert found["run"].astype(str).tolist() == ["dense"] * 6 + ["ticket"] * 6
    mine = found[found["run"] == "ticket"].drop(columns="run").reset_index(drop=True)
    pandas.testing.assert_frame_equal(mine, log.runs["ticket"].to_dataframe())
    assert found["pruned_weights"].tolist() == [0] * 4 + [4] * 2 + [0] + [6] * 4 + [12]


def test_runs_of_other_networks_and_records_of_none_stand_in_one_table(
    tmp_path: Path, pandas: Any
) -> None:
    files.write_run(tmp_path, "a", steps=range(1, 4))
    files.write_run(tmp_path, "b", steps=range(1, 3), layers={"head": 2}, lineage=2)
    layer = pastnet.read(tmp_path).to_dataframe()["layer"]
    assert list(layer.cat.categories) == ["conv1", "block/conv2", "head"]
    assert layer.tolist() == ["conv1", "block/conv2"] * 3 + ["head"] * 2
    files.LineageWriter(tmp_path, "c", lineage=3).describe(0)
    log = pastnet.read(tmp_path)
    found = log.to_dataframe()
    assert found["layer"].astype(str).tolist() == ["conv1", "block/conv2"] * 3 + ["head"] * 2
    assert list(log.runs["c"].to_dataframe().columns) == list(found.columns[1:])
    assert len(pastnet.read(tmp_path / "b").to_dataframe()) in (0, 2)
    (tmp_path / "empty").mkdir()
    assert pastnet.read(tmp_path / "empty").to_dataframe().empty


def test_places_of_one_name_stay_apart(tmp_path: Path, pandas: Any) -> None:
    writer = files.LineageWriter(tmp_path)
    writer.describe(0)
    same = (probed.Place("layer", "x", 2), probed.Place("output", "x", 2))
    probed.written(writer, range(1, 3), places=same)
    writer.records(range(1, 3))
    found = pastnet.read(tmp_path).runs["a"].function.to_dataframe()
    assert found["kind"].tolist() == ["layer", "output"] * 2
    assert found["place"].tolist() == ["x"] * 4


def test_violations_make_a_table_of_their_own(tmp_path: Path, pandas: Any) -> None:
    sample_log(tmp_path)
    found = pandas.DataFrame(pastnet.read(tmp_path).runs["dense"].violations)
    assert found.loc[0, ["variable", "channel", "cause"]].tolist() == [
        "conv1/kernel",
        0,
        "momentum",
    ]
