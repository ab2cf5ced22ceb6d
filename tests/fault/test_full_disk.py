"""A real full disk, of a few hundred kB, while Keras trains; and log directories that go away."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.record.segments import LocalSegments
from tests.both_loaders import in_both, the_run
from tests.recorded import read_lineages

WIDTH = 512
NOBODY = 65534
X = np.random.default_rng(0).normal(size=(4, 8)).astype("f")


def _run(command: list[str]) -> int:
    return subprocess.run(command, capture_output=True, check=False).returncode


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    if shutil.which("mount") is None or _run(command):
        pytest.skip("no file system can be mounted here: it takes root, outside of a container")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalSegments, "retry_seconds", (0.001, 0.01))


class Flushing(keras.callbacks.Callback):
    """Flushes at each step, and does something before one."""

    def __init__(self, logdir: Path, **at: tuple[int, Callable[[], object]]) -> None:
        super().__init__()
        self.observer = pastnet.PastNetCallback(logdir, every=1)
        self.actions = dict(at.values())
        self.acknowledged: list[int] = []
        self.seen = 0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.seen += 1
        self.actions.get(self.seen, lambda: None)()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        recorder = self.observer.recorder
        assert recorder is not None
        if recorder.flush(timeout=30.0):  # of a disk that fails it says so at once
            self.acknowledged.append(self.seen)


def fit(steps: int, *callbacks: keras.callbacks.Callback) -> list[float]:
    keras.utils.set_random_seed(0)
    wide = keras.layers.Dense(WIDTH, name="wide")
    model = keras.Sequential([keras.Input((8,)), wide, keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(1e-3), "mse")
    settings: dict[str, Any] = {"batch_size": 4, "epochs": steps, "verbose": 0}
    history = model.fit(X, X[:, :1], shuffle=False, callbacks=list(callbacks), **settings)
    losses: list[float] = history.history["loss"]
    return losses


@pytest.mark.prove
@pytest.mark.promise("full_disk")
def test_a_real_disk_that_is_full_then_freed(small_disk: Path, figure: Any) -> None:
    steps, ballast = 60, small_disk / "ballast"

    def fill() -> None:
        with ballast.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1 << 12))
            except OSError:
                return

    flushing = Flushing(small_disk / "run", full=(20, fill), freed=(45, ballast.unlink))
    losses = fit(steps, flushing.observer, flushing)
    flushing.observer.close()
    assert losses == fit(steps)

    (log,) = read_lineages(small_disk / "run")
    assert set(flushing.acknowledged) <= set(log.record_steps())
    assert {*range(1, 20)} <= {*flushing.acknowledged}
    assert not {*flushing.acknowledged} & {*range(25, 45)}
    assert flushing.acknowledged[-1] == steps
    assert len(log.record_steps()) + log.last.dropped == log.last.offered == steps
    (note,) = log.last.notes
    assert note == "Could not write records: OSError: No space left on device"
    run = in_both(small_disk, the_run)
    assert run["account"]["shown"] == len(log.record_steps())
    assert run["account"]["unreadable"] == 0
    figure(
        f"a real disk full for 25 of {steps} steps: {len(flushing.acknowledged)} acknowledged, 0 of "
        f"them lost, {log.last.dropped} dropped, both loaders"
    )


def delete(run: Path) -> None:
    shutil.rmtree(run)


def replace_by_a_file(run: Path) -> None:
    """And free it again later, as a user would who sees the note."""
    shutil.rmtree(run)
    run.write_text("in the way")


def move(run: Path) -> None:
    run.rename(run.with_name("moved"))


@pytest.mark.promise("deleted_logdir")
@pytest.mark.parametrize("lose", [delete, move])
def test_a_directory_that_goes_away(tmp_path: Path, lose: Callable[[Path], None]) -> None:
    run = tmp_path / "run"
    flushing = Flushing(run, gone=(10, lambda: lose(run)))
    losses = fit(20, flushing.observer, flushing)
    flushing.observer.close()
    assert losses == fit(20)
    assert flushing.acknowledged == list(range(1, 21))
    # A new segment within the flush of the same step, and nothing after it is lost.
    (log,) = read_lineages(run)
    assert log.record_steps() == list(range(10, 21))
    assert log.last.notes == {}
    assert (log.last.offered, log.last.closed) == (20, True)
    seen = in_both(run, lambda here: here.json("/index")["runs"][0]["account"])
    assert (seen["offered"], seen["shown"]) == (20, 11)


@pytest.mark.prove
@pytest.mark.promise("deleted_logdir")
def test_a_file_in_the_place_of_the_directory(tmp_path: Path, figure: Any) -> None:
    run = tmp_path / "run"
    flushing = Flushing(run, gone=(10, lambda: replace_by_a_file(run)), back=(15, run.unlink))
    losses = fit(20, flushing.observer, flushing)
    flushing.observer.close()
    assert losses == fit(20)
    assert [step for step in flushing.acknowledged if step < 10 or step > 15] == [
        *range(1, 10),
        *range(16, 21),
    ]
    (log,) = read_lineages(run)
    assert log.record_steps() == list(range(10, 21))
    (note,) = log.last.notes
    assert "Could not write records" in note
    figure(
        "deleted, moved, replaced by a file: a new segment within the same flush, 0 lost after it"
    )


@pytest.fixture
def not_as_root() -> Iterator[Path]:
    """A directory of a user who, unlike root, may not write to what is read-only; we are that user."""
    with tempfile.TemporaryDirectory() as folder:
        if os.geteuid():
            yield Path(folder)
            return
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
        try:
            yield Path(folder)
        finally:
            os.seteuid(0)


@pytest.mark.promise("deleted_logdir")
def test_a_directory_that_becomes_read_only(not_as_root: Path) -> None:
    run = not_as_root / "run"
    flushing = Flushing(
        run,
        shut=(10, lambda: [delete(one) for one in run.glob("pastnet.*")] and run.chmod(0o500)),
        open=(15, lambda: run.chmod(0o700)),
    )
    fit(20, flushing.observer, flushing)
    flushing.observer.close()
    (log,) = read_lineages(run)
    assert log.record_steps() == list(range(10, 21))
