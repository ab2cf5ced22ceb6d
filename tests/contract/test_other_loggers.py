"""`log=` loses nothing, however often a loop itself logs: in the files of the other loggers."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

import tb_pastnet as pastnet

STEPS = range(1, 13)
CALLS = [0, 1, 2, 5]
"""How often the loop itself logs in a step."""


def train(folder, log, own, calls, *, last=False):
    """Records each step, before or after the loop's own calls; returns what was passed to `log`."""
    kernel, passed = np.ones((3, 2), np.float32), []
    recorder = pastnet.numpy.Recorder(
        folder / "run", {"a/kernel": lambda: kernel}, every=1, log=log
    )
    tell = recorder._scalars.tell
    recorder._scalars.tell = lambda record, *others: (
        passed.append(record.step),
        tell(record, *others),
    )
    with recorder:
        for step in STEPS:
            kernel *= 0.9
            if last:
                recorder.record(step)
            for number in range(calls):
                own(f"own/{number}", step)
            if not last:
                recorder.record(step)
    assert not recorder.notes.counts()
    assert passed == [*STEPS]


@pytest.fixture(scope="module")
def wandb():
    return pytest.importorskip("wandb", reason="needs W&B: pip install wandb")


def rows_of(folder):
    """The rows of W&B's files: records in blocks as in LevelDB's log, behind a header of 7 bytes."""
    from wandb.proto import wandb_internal_pb2

    for path in Path(folder).glob("wandb/offline-run-*/*.wandb"):
        data, at, parts = path.read_bytes(), 7, b""
        while at + 7 <= len(data):
            if 32768 - at % 32768 < 7:
                at += 32768 - at % 32768
                continue
            _, size, kind = struct.unpack("<IHB", data[at : at + 7])
            parts += data[at + 7 : at + 7 + size]
            at += 7 + size
            if kind in (1, 4):
                record = wandb_internal_pb2.Record.FromString(parts)
                parts = b""
                if record.WhichOneof("record_type") == "history":
                    items = record.history.item
                    yield {i.key or ".".join(i.nested_key): json.loads(i.value_json) for i in items}


@pytest.mark.parametrize("explicit", [False, True], ids=["without steps", "with steps"])
@pytest.mark.parametrize("last", [False, True], ids=["own first", "own last"])
@pytest.mark.parametrize("calls", CALLS)
def test_wandb(wandb, tmp_path, monkeypatch, calls, last, explicit):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    early = wandb.log  # before `init`
    with wandb.init(project="p", dir=tmp_path) as run:
        log = {0: early, 1: wandb.log}.get(calls, run.log)
        train(
            tmp_path,
            log,
            lambda name, step: run.log({name: step}, step=step if explicit else None),
            calls,
            last=last,
        )
    wandb.teardown()  # waits until the file is whole
    rows = [*rows_of(tmp_path)]
    assert [row["pastnet/step"] for row in rows if "pastnet/step" in row] == [*STEPS]
    deltas = [row["pastnet/delta"] for row in rows if "pastnet/delta" in row]
    assert len(deltas) == len(STEPS)
    for number in range(calls):
        assert [row[f"own/{number}"] for row in rows if f"own/{number}" in row] == [*STEPS]


@pytest.mark.parametrize("calls", CALLS)
def test_mlflow(tmp_path, monkeypatch, calls):
    mlflow = pytest.importorskip("mlflow", reason="needs MLflow: pip install mlflow-skinny")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "mlflow").as_uri())
    with mlflow.start_run() as run:
        train(tmp_path, mlflow.log_metrics, mlflow.log_metric, calls)
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "pastnet/delta")
    assert [metric.step for metric in history] == [*STEPS]


@pytest.mark.parametrize("calls", CALLS)
def test_tensorboard(tmp_path, calls):
    tf = pytest.importorskip("tensorflow", reason="needs TensorFlow")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def log(numbers, step):
        for name, value in numbers.items():
            tf.summary.scalar(name, value, step)

    with tf.summary.create_file_writer(str(tmp_path / "scalars")).as_default():
        train(tmp_path, log, lambda name, step: tf.summary.scalar(name, step, step), calls)
    events = EventAccumulator(str(tmp_path / "scalars"), {"tensors": 0})
    events.Reload()
    assert [event.step for event in events.Tensors("pastnet/delta")] == [*STEPS]
