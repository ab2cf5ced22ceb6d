"""A training that records into a store is read as one on this machine's disk, in few requests."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.reader.local_log import LocalLog
from tb_pastnet.record import segments
from tests.both_loaders import in_both
from tests.commands import command
from tests.fault.sinking import change, make_sink, offer
from tests.stores import S3, s3
from tests.tensorboards import Board

STORES = ["s3://bucket/runs/a", "memory://runs/a", "ram://runs/a"]
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


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], dict[str, Any]]:
    logdir = tmp_path_factory.mktemp("disk") / "a"
    return train(logdir), told(pastnet.read(logdir))


@pytest.mark.promise("stores")
@pytest.mark.parametrize("url", STORES)
def test_a_log_in_a_store_is_that_on_disk(store: S3, on_disk: Any, url: str, figure: Any) -> None:
    weights, expected = on_disk
    np.testing.assert_equal(train(url), weights)
    np.testing.assert_equal(told(pastnet.read(url)), expected)
    # One level above it as well.
    assert list(pastnet.read(url.rpartition("/")[0]).runs) == ["a"]
    figure(f"a training into {url.partition(':')[0]}: weights and log are those of one on disk")


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
    store.requests.clear()
    code, out, _ = command("report", "s3://bucket/commands", "--json", "--fail-on", "violations")
    assert code == 0
    (run,) = json.loads(out)["runs"]
    assert (run["name"], run["records"]) == ("a", 64)
    # One for the list, one for each object; those that look whether it is a directory.
    assert len(store.requests) <= 3 + 3
    assert command("check", "s3://bucket/commands")[0] == 0
    assert command("export", "s3://bucket/commands", str(tmp_path / "out"))[0] == 0


@pytest.mark.parametrize(
    ("url", "got"),
    [
        ("s3://missing/a", "The specified bucket does not exist"),
        ("s3://bucket/nothing", "no event file there"),
        ("s3://bucket/a?versionId=1", "a URL with a query"),
        ("abfs://box/a", "no driver for abfs://, run: pip install adlfs"),
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


@pytest.mark.promise("stores")
def test_requests_and_bytes_of_20_000_records_are_few(
    store: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figure: Any
) -> None:
    """Of 1,000 seconds, as a clock tells that follows the records."""
    now = [1000.0]
    monkeypatch.setattr(segments, "time", _Clock(now))
    sizes = {}
    for logdir in ("s3://bucket/many", str(tmp_path / "many")):
        store.requests.clear()
        sink, _ = make_sink(logdir)
        for step in range(1, 20_001):
            now[0] += 0.05
            if step % 10 == 0:
                change(sink, step)
            while not offer(sink, step):
                time.sleep(0.001)
            if sink._queue.qsize() > 100:
                time.sleep(0.01)
        sink.close(60.0)
        sizes[logdir] = sum(put.size for put in store.puts)
        puts = len(store.puts)
        if logdir.startswith("s3"):
            # The first, then after 10, 20, 40, 80, 160, 300 and 300 seconds, and the last.
            assert puts <= 9
            figure(f"20,000 records in {puts} PUTs")
    local = sum(file.stat().st_size for file in (tmp_path / "many").rglob("*.pastnet"))
    assert sizes["s3://bucket/many"] <= 1.3 * local
    (run,) = pastnet.read("s3://bucket/many").runs.values()
    assert run.account.shown + run.account.thinned == 20_000
    assert run.account.dropped == 0


class _Clock:
    """Stands for the module `time`."""

    def __init__(self, now: list[float]) -> None:
        self.monotonic = lambda: now[0]
        self.time = time.time
