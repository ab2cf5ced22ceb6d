"""From a real training to the routes, in both loaders: the numbers are those of NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tensorboards import LOADERS, Board, board

tf = pytest.importorskip("tensorflow")

import tb_pastnet as pastnet  # noqa: E402

STEPS = 200


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[np.ndarray]]:
    """A kernel of three channels: one moves, one is at rest from step 100 on, one is zero."""
    logdir = tmp_path_factory.mktemp("log")
    rng = np.random.default_rng(3)
    kernel = tf.Variable(rng.normal(size=(5, 3)) * [1.0, 1.0, 0.0], dtype=tf.float32)
    values = []
    with pastnet.Recorder(logdir / "run", {"dense/kernel": kernel}, every=1) as recorder:
        for step in range(STEPS):
            values.append(kernel.numpy())
            recorder.record(step)
            moving = [1e-2, 1e-2 if step < 100 else 0.0, 0.0]
            if step + 1 == STEPS:
                break  # nothing changes any more
            kernel.assign_add((rng.normal(size=(5, 3)) * moving).astype(np.float32))
        assert recorder.flush(30.0)
    return logdir, values


def norms(value: np.ndarray) -> np.ndarray:
    return np.linalg.norm(value.astype(np.float64), axis=0)


def channel(here: Board, index: int) -> dict[str, Any]:
    return here.json("/channel", run="run", layer="dense", channel=index)


@pytest.mark.parametrize("loader", LOADERS)
def test_what_was_recorded_is_what_the_routes_answer(
    trained: tuple[Path, list[np.ndarray]], loader: str
) -> None:
    logdir, values = trained
    with board(logdir, loader) as here:
        (run,) = here.json("/index")["runs"]
        assert (run["name"], run["closed"], run["notes"]) == ("run", True, [])
        account = run["account"]
        assert account["offered"] == account["shown"] == run["records"]
        for index in range(3):
            found = channel(here, index)
            for at, step in enumerate(found["steps"]):
                past = found["past_steps"][at]
                now, before = values[step][:, index], values[max(past, 0)][:, index]
                delta = np.linalg.norm(now.astype(np.float64) - before)
                if past < 0:
                    delta = 0.0
                assert found["norm"][at] == pytest.approx(norms(values[step])[index], rel=0.023)
                assert found["delta_norm"][at] == pytest.approx(delta, rel=0.023)
                assert (found["delta_norm"][at] == 0) == (delta == 0)
        assert channel(here, 0)["state"][-1] == "moving"
        assert channel(here, 1)["state"][-1] == "quiet"
        assert channel(here, 2)["state"][-1] == "quiet"  # zero in every record isn't pruned
        _, arrays = here.arrays("/records", run="run")
        assert arrays["counts"][0, -1].tolist() == [0, 1, 0, 2, 0, 0, 0, 0]


@pytest.mark.parametrize("loader", LOADERS)
def test_a_users_own_writer(tmp_path: Path, loader: str) -> None:
    writer = tf.summary.create_file_writer(str(tmp_path / "mine"))
    with writer.as_default(), tf.name_scope("train"):
        for step in range(1, 31):
            now, past = np.full((4, 2), 1.0 + step), np.full((4, 2), float(step))
            pastnet.summary.channels("dense0/kernel", now, past, step=step)
    writer.close()
    with board(tmp_path, loader) as here:
        (run,) = here.json("/index")["runs"]
        assert (run["name"], run["source"], run["records"]) == ("mine", "summary", 30)
        found = here.json("/channel", run="mine", layer="train/dense0", channel=1)
        assert found["delta_norm"] == pytest.approx([2.0] * 30, rel=0.023)
        assert found["past_steps"] == list(range(30))
