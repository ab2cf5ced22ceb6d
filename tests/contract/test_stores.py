"""A training that records into a store is read as one on this machine's disk, in few requests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import keras
import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.reader.local_log import LocalLog
from tb_pastnet.record import segments
from tests.both_loaders import in_both
from tests.commands import command
from tests.event_files import LineageWriter
from tests.fault.sinking import change, make_sink, offer
from tests.gcs import gcs
from tests.read_back import check
from tests.slow_store import SlowFileSystem
from tests.stores import S3, Server, s3
from tests.tensorboards import LOADERS, Board, board

STORES = {
    "s3": ("s3://bucket/runs/a", s3),
    "memory": ("memory://runs/a", nullcontext),
    "ram": ("ram://runs/a", nullcontext),
    "gcsfs": ("gs://bucket/runs/a", gcs),
    "tensorflow": ("gs://bucket/runs/a", partial(gcs, "tensorflow")),
    "slow": ("slow://{folder}/runs/a", nullcontext),
}
OF_THE_CLOCK = {"overhead", "bytes", "bytes_per_record"}
X, Y = (np.random.default_rng(seed).normal(size=(64, 4)).astype("f4") for seed in (0, 1))


@pytest.fixture(scope="module")
def store() -> Iterator[S3]:
    with s3() as server:
        yield server


def train(logdir: str | Path | None) -> list[Any]:
    """A model that is pruned and frozen meanwhile; its weights at last."""
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(4)]
    )
    model.compile("adam", "mse")
    masks = pastnet.Masks(model)
    masks.freeze("dense/kernel", channels=[1])
    callbacks = []
    if logdir is not None:
        callbacks = [pastnet.PastNetCallback(logdir, every=1)]
    for sparsity in (0.3, 0.6):
        model.fit(X, Y, 4, epochs=2, verbose=0, callbacks=callbacks)
        masks.prune_smallest(sparsity)
    for callback in callbacks:
        callback.close()
    return [np.asarray(weight) for weight in model.weights]


def told(log: pastnet.log.Log) -> dict[str, Any]:
    """All that doesn't depend on the clock."""
    (run,) = log.runs.values()
    found: dict[str, Any] = {"account": run.account, "notes": dict(run.notes), "steps": run.steps}
    for name, variable in run.variables.items():
        for each in ("norm", "past_norm", "delta_norm", "delta_max", "changed", "kept"):
            found[f"{name} {each}"] = getattr(variable, each)
        found[f"{name} states"] = variable.states()
        found[f"{name} masks"] = variable.masks(int(run.steps[-1])).kept
    return found


def report(logdir: str | Path) -> Any:
    """What the command says of the only run, without what depends on the clock."""
    code, out, _ = command("report", logdir, "--json", "--fail-on", "violations")
    (run,) = json.loads(out)["runs"]
    return code, {key: value for key, value in run.items() if key not in OF_THE_CLOCK}


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    logdir = tmp_path_factory.mktemp("disk") / "a"
    weights = train(logdir)
    size = sum(file.stat().st_size for file in logdir.rglob("*.pastnet"))
    return weights, told(pastnet.read(logdir)), report(logdir), size


@pytest.mark.promise("stores")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("s3", "tensorflow") else pytest.mark.prove)
        for name in STORES
    ],
)
def test_a_log_in_a_store_is_that_on_disk(
    on_disk: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figure: Any
) -> None:
    weights, expected, reported, size = on_disk
    url, opened = STORES[name]
    url = url.format(folder=tmp_path)
    monkeypatch.setattr(SlowFileSystem, "seconds", 0.2)
    monkeypatch.setattr(segments, "PUT_SECONDS", (3600.0, 3600.0))  # also on a slow machine
    with opened() as server:
        np.testing.assert_equal(train(url), weights)
        if isinstance(server, Server):
            # The first, and that at the end of each `fit`, as no 10 seconds are over.
            sent = sum(put.size for put in server.puts)
            assert len(server.puts) <= 4
            assert sent <= 1.3 * size
            figure(f"{name}: {len(server.puts)} PUTs, {sent / size:.2f} of the bytes on a disk")
        np.testing.assert_equal(told(pastnet.read(url)), expected)
        assert report(url) == reported
        # One level above it as well.
        assert list(pastnet.read(url.rpartition("/")[0]).runs) == ["a"]
        copy = LocalLog(url.rpartition("/")[0])  # gone with it
    for loader in LOADERS:
        with board(Path(copy.path), loader) as here:
            assert check(here, pastnet.read(copy.path)) > 0


@pytest.mark.promise("stores")
def test_the_tab_reads_objects_in_both_loaders(store: S3, on_disk: Any) -> None:
    url = "s3://bucket/shown"
    train(f"{url}/a")
    copy = LocalLog(url)  # gone with it

    def shown(here: Board) -> Any:
        return here.json("/index")["runs"]

    (run,) = in_both(Path(copy.path), shown)
    expected = on_disk[1]["account"]
    assert (run["name"], run["records"], run["notes"]) == ("a", expected.shown, [])


def test_commands_take_urls(store: S3, tmp_path: Path) -> None:
    train("s3://bucket/commands/a")
    store.clear()
    code, out, _ = command("report", "s3://bucket/commands", "--json", "--fail-on", "violations")
    assert code == 0
    (run,) = json.loads(out)["runs"]
    assert (run["name"], run["records"]) == ("a", 65)  # one is that of the end
    # One for the list, one for each object; those that look whether it is a directory.
    assert len(store.requests) <= 3 + 3
    assert command("check", "s3://bucket/commands")[0] == 0
    assert command("export", "s3://bucket/commands", str(tmp_path / "out"))[0] == 0


@pytest.mark.prove
@pytest.mark.promise("stores")
def test_a_report_of_300_layers_and_1_000_records(store: S3, tmp_path: Path, figure: Any) -> None:
    writer = LineageWriter(tmp_path, layers={f"block{n // 10}/conv{n}": 16 for n in range(300)})
    for writer.segment, steps in enumerate(np.array_split(np.arange(1, 1001), 9)):
        writer.describe(0, audited=True)
        writer.records(steps.tolist())
    writer.close(1000)
    fsspec.filesystem("s3").put(f"{tmp_path}/", "bucket/large", recursive=True)
    store.clear()
    begin = sum(os.times()[2:4])
    # A process of its own, as it reads a log only once.
    program = [sys.executable, "-m", "tb_pastnet", "report", "s3://bucket/large"]
    report = subprocess.run(
        [*program, "--fail-on", "violations"], capture_output=True, text=True, check=True
    )
    seconds = sum(os.times()[2:4]) - begin
    assert "1,000 due: 1,000 shown" in report.stdout
    assert len(store.requests) == 1 + 9
    figure(
        f"report of 300 layers × 1,000 records in {seconds:.1f} CPU s, {len(store.requests)} requests",
        met=seconds < 10,
    )


@pytest.mark.parametrize(
    ("url", "got"),
    [
        ("s3://missing/a", "The specified bucket does not exist"),
        ("s3://bucket/nothing", "no event file there"),
        ("s3://bucket/a?versionId=1", "a URL with a query"),
        ("abfs://box/a", "no driver for abfs://'. Run: pip install adlfs."),
    ],
)
def test_what_cannot_be_read_says_why(store: S3, url: str, got: str) -> None:
    code, _, error = command("report", url)
    assert code == 2
    assert error.startswith(f"Could not read the log '{url}': expected a directory of event files")
    assert got in error
    if url != "s3://bucket/nothing":
        with pytest.raises(pastnet.errors.UnwritableLog) as raised:
            pastnet.Recorder(url, {"w": keras.Variable(np.ones((2, 2)))})
        assert got in str(raised.value)
    with pytest.raises(pastnet.errors.UnreadableLog):
        pastnet.read(url)


def record(count: int, logdir: str, now: list[float]) -> None:
    """In 1,000 seconds of a clock that follows the records."""
    sink, _ = make_sink(logdir)
    for step in range(1, count + 1):
        now[0] += 1000 / count
        if step % 10 == 0:
            change(sink, step)
        while not offer(sink, step):
            time.sleep(0.001)
        if len(sink._background.items) > 100:
            time.sleep(0.01)
    sink.close(60.0)


def size_on_disk(count: int, logdir: Path) -> int:
    record(count, str(logdir), [1000.0])
    return sum(file.stat().st_size for file in logdir.rglob("*.pastnet"))


@pytest.mark.promise("stores")
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("s3", 4_000),
        *(
            pytest.param(name, 20_000, marks=pytest.mark.prove)
            for name in ("s3", "gcsfs", "tensorflow")
        ),
    ],
)
def test_requests_and_bytes_of_many_records_are_few(
    name: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figure: Any
) -> None:
    size = size_on_disk(count, tmp_path)
    now, times = [1000.0], []
    monkeypatch.setattr(segments, "time", _Clock(now))
    url, opened = STORES[name]
    url += f"-{count}"  # its bucket outlives a case
    with opened() as server:
        server.fault = lambda number: times.append(now[0])
        record(count, url, now)
        # The first, then after 10, 20, 40, 80, 160, 300 and 300 seconds, and the last.
        assert len(server.puts) <= 9
        assert np.diff(times[:-1]).min() >= 10.0
        sent = sum(put.size for put in server.puts)
        assert sent <= 1.3 * size
        ratio = sent / size
        figure(
            f"{name}: {count:,} records in {len(times)} PUTs, {ratio:.2f} of the bytes on a disk"
        )
        (run,) = pastnet.read(url).runs.values()
    assert run.account.shown + run.account.thinned == count
    assert run.account.dropped == 0


class _Clock:
    """Stands for the module `time`."""

    def __init__(self, now: list[float]) -> None:
        self.monotonic = lambda: now[0]
        self.time = time.time
