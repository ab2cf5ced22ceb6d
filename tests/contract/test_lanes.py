"""Lanes and scalars of runs, against the log's own records and TensorBoard's own values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.data import provider as tb
from tensorboard.plugins.scalar import metadata
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tensorboard.util import tensor_util

import tb_pastnet as pastnet
from tests import containers
from tests import event_files as files
from tests.contract.test_http_api import sample_log
from tests.tensorboards import LOADERS, Board, board


class Scalars:
    """A writer of scalars that takes the time of each."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._writer = EventFileWriter(str(folder))

    def add(self, tag: str, value: float, step: int, at: float) -> None:
        tensor = tensor_util.make_tensor_proto(np.float32(value))
        own = metadata.create_summary_metadata("", "")
        entry = summary_pb2.Summary.Value(tag=tag, tensor=tensor, metadata=own)
        event = event_pb2.Event(wall_time=at, step=step, summary={"value": [entry]})
        self._writer.add_event(event)

    def close(self) -> None:
        self._writer.close()


def train(logdir: Path, run: str, steps: range, ordinal: int = 1, **more: Any) -> float:
    """A lineage with a record each second; the time at step 0."""
    writer = files.LineageWriter(logdir, run, ordinal, ordinal, **more)
    writer.describe(steps[0])
    writer.records(steps)
    return writer.created


def scalars(here: Board, run: str, **query: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    return containers.unpack(here.get("/scalars", run=run, **query).get_data())


def told(here: Board, run: str, tag: str) -> list[tuple[int, float]]:
    """What TensorBoard itself says of a scalar."""
    wanted = tb.RunTagFilter([run], [tag])
    from tensorboard import context

    found = here.provider.read_scalars(
        context.RequestContext(), experiment_id="", plugin_name="scalars", downsample=1000,
        run_tag_filter=wanted,
    )  # fmt: skip
    return [(point.step, point.value) for point in found[run][tag]]


@pytest.mark.parametrize("loader", LOADERS)
def test_scalars_are_tensorboards_at_their_own_steps(tmp_path: Path, loader: str) -> None:
    begin = train(tmp_path, "a", range(1, 21))
    writer = Scalars(tmp_path / "a")
    for step in range(1, 21):
        writer.add("train/loss", 1 / step, step, begin + step)
        writer.add("train/accuracy", step, step, begin + step)
    writer.close()
    with board(tmp_path, loader) as here:
        header, arrays = scalars(here, "a")
        assert (header["name"], header["placed"]) == ("train/loss", "step")
        assert header["names"] == ["train/accuracy", "train/loss"]
        found = list(zip(arrays["steps"].tolist(), arrays["values"].tolist(), strict=True))
        assert found == told(here, "a", "train/loss")
        assert arrays["at"].tolist() == list(range(1, 21))
        other = scalars(here, "a", name="train/accuracy")[1]["values"]
        assert other.tolist() == list(range(1, 21))
        assert scalars(here, "a", name="none")[0]["name"] is None


@pytest.mark.parametrize("loader", LOADERS)
def test_epochs_are_placed_by_time_and_other_runs_stay_apart(tmp_path: Path, loader: str) -> None:
    begin = train(tmp_path, "a", range(1, 41))
    for below in ("train", "validation"):
        writer = Scalars(tmp_path / "a" / below)
        for epoch in range(4):
            writer.add("epoch_loss", epoch, epoch, begin + 10 * (epoch + 1))
        writer.close()
    train(tmp_path, "a/b", range(1, 3))
    writer = Scalars(tmp_path / "a" / "b")
    writer.add("loss", 9, 1, begin + 1)
    writer.close()
    with board(tmp_path, loader) as here:
        header, arrays = scalars(here, "a")
        assert header["names"] == ["train: epoch_loss", "validation: epoch_loss"]
        assert (header["name"], header["placed"]) == ("train: epoch_loss", "time")
        assert arrays["at"].tolist() == [10, 20, 30, 40]
        assert arrays["steps"].tolist() == [0, 1, 2, 3]
        assert scalars(here, "a/b")[0]["names"] == ["loss"]


@pytest.mark.parametrize("loader", LOADERS)
def test_a_resumed_run_has_what_stands_of_both_trainings(tmp_path: Path, loader: str) -> None:
    writer = Scalars(tmp_path / "a")
    for ordinal, steps in ((1, range(1, 11)), (2, range(8, 16))):
        begin = train(tmp_path, "a", steps, ordinal)
        for step in steps:
            writer.add("loss", 100 * ordinal + step, step, begin + step)
    writer.close()
    with board(tmp_path, loader) as here:
        values = scalars(here, "a")[1]["values"].tolist()
    assert values == [*range(101, 108), *range(208, 216)]


@pytest.mark.parametrize("loader", LOADERS)
def test_the_second_run_in_a_directory_has_its_own_points(tmp_path: Path, loader: str) -> None:
    writer = Scalars(tmp_path / "a")
    begin = train(tmp_path, "a", range(1, 6))
    later = train(tmp_path, "a/a_2", range(6, 11), 2)
    assert later > begin + 10
    for step in range(1, 11):
        writer.add("loss", step, step, (begin if step < 6 else later) + step)
    writer.close()
    with board(tmp_path, loader) as here:
        found = {name: scalars(here, name)[1]["values"].tolist() for name in ("a", "a/a_2")}
    assert found == {"a": [1, 2, 3, 4, 5], "a/a_2": [6, 7, 8, 9, 10]}


@pytest.mark.parametrize("loader", LOADERS)
def test_the_log_directory_itself_may_be_the_run(tmp_path: Path, loader: str) -> None:
    begin = train(tmp_path, ".", range(1, 6))
    writer = Scalars(tmp_path)
    writer.add("loss", 3, 5, begin + 5)
    writer.close()
    with board(tmp_path, loader) as here:
        assert scalars(here, ".")[1]["values"].tolist() == [3]


def test_a_lane_has_the_records_and_flags_of_the_log(tmp_path: Path) -> None:
    sample_log(tmp_path)
    run = pastnet.read(tmp_path).runs["dense"]
    overview = run.overview()
    with board(tmp_path, "slow") as here:
        data = here.get("/lanes", run="dense", layer="conv1").get_data()
        header, arrays = containers.unpack(data)
        plain = containers.unpack(here.get("/lanes", run="dense").get_data())[0]
        assert here.get("/lanes", run="dense", layer="none").status_code == 404
    assert (header["layers"], header["channels"], header["prunable"]) == (1, 2, 18)
    assert header["flags"] == plain["flags"]
    assert arrays["steps"].tolist() == run.steps.tolist()
    # At step 4 one of two channels is frozen, at step 5 four weights pruned; one moves at step 6.
    kinds = {(flag["kind"], flag["first_step"], flag["amount"]) for flag in header["flags"]}
    assert kinds == {("freeze", 4, 1), ("prune", 5, 4), ("violation", 6, 1)}
    frozen = arrays["shares"][:, 4] / arrays["shares"].sum(axis=1)
    assert np.abs(frozen - overview.frozen[:, 0] / 2).max() < 1 / 255
