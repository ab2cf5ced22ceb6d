"""One answer: what TensorBoard's two loaders make of the same log, with default flags."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tb_pastnet.format.block import Block, encode_block
from tb_pastnet.format.tags import TAG_TIMELINE, channels_tag
from tb_pastnet.format.timeline import Timeline
from tests import event_files as files
from tests.blocks import all_records
from tests.both_loaders import ROUTES, everything, in_both, the_run
from tests.tensorboards import LOADERS, Board, board, flags_for


@pytest.mark.promise("default_flags")
@pytest.mark.parametrize("loader", LOADERS)
def test_all_of_1000_steps_are_known(
    tmp_path: Path, loader: str, figure: Callable[..., None]
) -> None:
    files.write_run(tmp_path, steps=range(1, 1001))
    with board(tmp_path, loader) as here:
        run = the_run(here)
        assert (run["records"], run["first_step"], run["last_step"]) == (1000, 1, 1000)
        header, arrays = here.arrays("/layer", run="a", layer="conv1")
        assert arrays["steps"].tolist() == list(range(1, 1001))
        assert header["account"]["shown"] == 1000
        _, drawn = here.arrays("/overview", run="a")
        assert drawn["shares"].shape == (2, 256, 8)
        _, told = all_records(here, run="a")
        assert told["steps"].tolist() == list(range(1, 1001))
        assert told["counts"].sum(axis=2).tolist() == [[4] * 1000, [6] * 1000]
    figure(f"{loader} loader: {run['records']:,} of 1,000 records known")


@pytest.mark.promise("default_flags")
def test_without_our_flag_tensorboard_would_forget_most(tmp_path: Path) -> None:
    """The trap is real: this test fails if TensorBoard no longer samples, and fix_flags can go."""
    files.write_run(tmp_path, steps=range(1, 1001), block=1)
    with board(tmp_path, "slow", "--samples_per_plugin", "pastnet=10") as here:
        assert here.json("/index")["runs"][0]["records"] <= 10


@pytest.mark.promise("default_flags")
def test_a_users_own_flag_is_respected(tmp_path: Path) -> None:
    assert flags_for(tmp_path).samples_per_plugin == {"pastnet": 0}
    flags = flags_for(tmp_path, "--samples_per_plugin", "pastnet=7,scalars=3")
    assert flags.samples_per_plugin == {"pastnet": 7, "scalars": 3}


def test_every_route_gives_the_same_bytes(tmp_path: Path) -> None:
    files.write_run(tmp_path, "a")
    files.write_run(tmp_path, "deep/er/b", steps=range(0, 200, 5), lineage=2)
    writer = files.LineageWriter(tmp_path, ".", lineage=3)
    writer.describe(0)
    kernel = files.codes(range(1, 41), 4)
    files.freeze(kernel, slice(10, 20), slice(0, 2))
    files.prune(kernel, slice(25, None), slice(1, 3))
    files.poison(kernel, slice(3, 9), slice(3, 4))
    writer.records(range(1, 41), {"conv1/kernel": kernel}, learning_rates=[0.1] * 20 + [0.01] * 20)
    found = in_both(tmp_path, lambda here: everything(here, "a", "deep/er/b", "."))
    assert len(found) == 1 + 3 * (len(ROUTES) + 8)


def test_what_the_writer_gave_up_and_left_out_is_shown(tmp_path: Path) -> None:
    writer = files.LineageWriter(tmp_path)
    writer.describe(0)
    writer.records(range(1, 41), thinned=5, dropped=3, notes={"The queue was full": 3})
    writer.close(40, thinned=5, dropped=3, notes={"The queue was full": 3})
    run = in_both(tmp_path, the_run)
    assert (run["account"]["thinned"], run["account"]["dropped"]) == (5, 3)
    assert run["notes"] == [{"text": "The queue was full", "count": 3}]
    assert run["closed"]


@pytest.mark.promise("foreign_and_future")
@pytest.mark.parametrize(
    ("bytes_", "note"),
    [
        (b"nothing of ours", "did not write"),
        (b"PAST\x09\x01\x00\x00\x00\x00\x00\x00future", "newer format"),
        (b"PAST\x01\x01\x00\x00\x00\x00\x00\x00damaged", "Damaged"),
        (b"", "did not write"),
    ],
)
def test_garbage_under_our_name_is_counted_and_the_rest_is_shown(
    tmp_path: Path, bytes_: bytes, note: str
) -> None:
    writer = files.LineageWriter(tmp_path)
    writer.describe(0)
    writer.records(range(1, 17))
    for tag in (channels_tag("conv1/kernel"), TAG_TIMELINE, "description"):
        writer.put(tag, 17, bytes_)
    writer.records(range(18, 34))

    def look(here: Board) -> Any:
        header, arrays = here.arrays("/layer", run="a", layer="conv1")
        return the_run(here), header, arrays["steps"].tolist()

    run, header, steps = in_both(tmp_path, look)
    assert steps == [*range(1, 17), *range(18, 34)]
    assert run["account"]["unreadable"] == header["account"]["unreadable"] == 1
    for notes in (run["notes"], header["notes"]):
        assert note in notes[0]["text"]


@pytest.mark.promise("foreign_and_future")
def test_a_series_without_any_value_fails_nobody(tmp_path: Path) -> None:
    """TensorBoard's slow loader raises KeyError for all runs when it lists such a series."""
    files.write_run(tmp_path, "good", lineage=1)
    bad = files.LineageWriter(tmp_path, "bad", lineage=2)
    bad.describe(0)
    bad.records(range(1, 17))
    bad.put("channels/nothing", 17, None)

    def look(here: Board) -> Any:
        return [(run["name"], run["records"]) for run in here.json("/index")["runs"]], everything(
            here, "bad", "good"
        )

    runs, _ = in_both(tmp_path, look)
    assert runs == [("bad", 16), ("good", 40)]


@pytest.mark.promise("foreign_and_future")
def test_a_tensor_that_tensorboard_cant_convert_costs_itself_alone(tmp_path: Path) -> None:
    from tensorboard.compat.proto import tensor_pb2

    files.write_run(tmp_path, "good", lineage=1)
    bad = files.LineageWriter(tmp_path, "bad", lineage=2)
    bad.describe(0)
    bad.records(range(1, 17))
    broken = tensor_pb2.TensorProto(dtype=files.DT_UINT8, tensor_content=b"12345")
    broken.tensor_shape.dim.add(size=7)
    bad.put(channels_tag("conv1/kernel"), 17, None, tensor=broken)
    bad.records(range(18, 34))

    def look(here: Board) -> Any:
        header, _ = here.arrays("/overview", run="bad")
        return header["accounts"], header["notes"], everything(here, "good")

    (conv1, conv2), notes, _ = in_both(tmp_path, look)
    assert (conv1["shown"], conv1["unreadable"]) == (32, 1)
    assert conv2["shown"] == 32
    assert "did not write" in notes[0]["text"]


def test_runs_share_their_network_and_others_are_counted(tmp_path: Path) -> None:
    for number, run in enumerate("abc"):
        files.write_run(tmp_path, run, lineage=number + 1)
    files.write_run(tmp_path, "wide", lineage=9, layers={"conv1": 5})
    path = tmp_path / "scalars" / "events.out.tfevents.1700000000.host"
    path.parent.mkdir()
    path.write_bytes(files.frame(files.scalar_event("loss", 1, 0.5)))
    path = tmp_path / "a" / "events.out.tfevents.1700000000.host"
    path.write_bytes(files.frame(files.scalar_event("loss", 1, 0.5)))
    index = in_both(tmp_path, lambda here: here.json("/index"))
    assert [run["network"] for run in index["runs"]] == [0, 0, 0, 1]
    assert len(index["networks"]) == 2
    assert index["other_runs"] == 1  # run a has data of ours, below it


def test_started_inside_a_lineage_it_says_so(tmp_path: Path) -> None:
    writer = files.write_run(tmp_path)
    index = in_both(writer.directory, lambda here: here.json("/index"))
    assert index["runs"] == []
    assert "one directory above" in index["warnings"][0]


def test_an_empty_log_directory_is_an_empty_index(tmp_path: Path) -> None:
    index = in_both(tmp_path, lambda here: here.json("/index"))
    assert (index["runs"], index["networks"], index["other_runs"], index["warnings"]) == (
        [],
        [],
        0,
        [],
    )


@pytest.mark.promise("changed_layers")
def test_a_layer_with_a_new_shape_starts_a_new_series(tmp_path: Path) -> None:
    files.write_run(tmp_path, steps=range(20), ordinal=1, layers={"conv1": 4, "gone": 2})
    files.write_run(tmp_path, steps=range(20, 40), ordinal=2, layers={"conv1": 8, "new": 3})

    def look(here: Board) -> Any:
        header, arrays = here.arrays("/layer", run="a", layer="conv1")
        return here.json("/index"), header, arrays["steps"].tolist()

    index, header, steps = in_both(tmp_path, look)
    assert [layer["id"] for layer in index["networks"][0]["layers"]] == ["conv1", "new", "gone"]
    assert steps == list(range(20, 40))
    assert header["account"]["superseded"] == 20
    assert "number of channels" in header["notes"][0]["text"]


def test_a_lost_timeline_doesnt_lose_the_records(tmp_path: Path) -> None:
    writer = files.LineageWriter(tmp_path)
    writer.describe(0)
    writer.records(range(1, 17))
    damaged = writer.sealed(Timeline(offered=32), 32)[:-1]
    block = Block(*[np.arange(16, 32) + n for n in (0, 1, 0)], files.codes(range(17, 33), 4))
    tag = channels_tag("conv1/kernel")
    writer.put(tag, 32, encode_block(block, tag=tag, lineage=writer.lineage))
    writer.put(TAG_TIMELINE, 32, damaged)

    def look(here: Board) -> Any:
        the_run(here)
        _, told = all_records(here, run="a")
        _, drawn = here.arrays("/overview", run="a")
        arrays = told["counts"], told["age"], told["steps"], drawn["steps"], drawn["shares"]
        return [array.tolist() for array in arrays]

    counts, ages, steps, columns, shares = in_both(tmp_path, look)
    assert steps == columns == list(range(1, 33))
    assert counts[0][31][1] == 4
    # Of the other layer nothing is there: its newest record is of step 16.
    assert ages == [[0] * 32, [0] * 16 + list(range(1, 17))]
    assert counts[1][31] == counts[1][15]
    assert shares[1][31] == [255, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("loader", LOADERS)
def test_many_threads_get_one_answer(tmp_path: Path, loader: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    files.write_run(tmp_path, steps=range(1, 201))
    with board(tmp_path, loader) as here, ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: everything(here, "a"), range(8)))
        assert all(one == found[0] for one in found)
