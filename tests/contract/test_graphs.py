"""From a training of TensorFlow 1 to the routes, in both loaders: the numbers are those of NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.both_loaders import in_both
from tests.interpreter import Interpreter
from tests.tensorboards import Board

pytest.importorskip("tensorflow")

STEPS, HELD, LEAK = 12, 4, 8

# As users write it: without eager execution and with reference variables.
PROGRAM = """
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
import tb_pastnet as pastnet

rng = np.random.default_rng(0)
x = tf.constant(rng.normal(size=(16, 5)).astype("f"))
kernel = tf.get_variable("net/dense/w", initializer=rng.normal(size=(5, 4)).astype("f"))
bias = tf.get_variable("net/dense/b", initializer=np.zeros(4, "f"))
hidden = tf.tanh(tf.nn.bias_add(tf.matmul(x, kernel), bias))
out = tf.get_variable("net/out/w", initializer=rng.normal(size=(4, 2)).astype("f"))
loss = tf.reduce_mean((tf.matmul(hidden, out) - 1) ** 2)
step = tf.train.get_or_create_global_step()

masks = pastnet.v1.Masks()
train = masks.wrap(tf.train.AdamOptimizer(0.01)).minimize(loss, step)
leak = kernel.assign_add(np.eye(5, 4, dtype="f")[:, ::-1] * [0, 0, 0, 0.25])
recording = pastnet.v1.Recorder(f"{folder}/run", every=1, learning_rate=0.01, masks=masks)
past = tf.get_variable("past", (5, 4), trainable=False)
pastnet.v1.summary.channels("net/dense/w", kernel, past, kept=masks.variables[0])
summary = tf.summary.merge_all()
keep = past.assign(kernel + 0)

with tf.Session() as session, session.as_default():
    session.run([tf.global_variables_initializer(), masks.initializer])
    writer = tf.summary.FileWriter(f"{folder}/own")
    recording.restart(0)
    values = [session.run(kernel)]
    for number in range(1, steps + 1):
        session.run(keep)
        if number == held:
            masks.prune("dense/w", channels=[1])
            masks.freeze("dense/w", channels=[3])
        session.run(train)
        if number == leaks:
            session.run(leak)
        recording.record(number)
        writer.add_summary(*session.run([summary, step]))
        values.append(session.run(kernel))
    recording.close()
    writer.close()
np.save(f"{folder}/values.npy", values)
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray]:
    folder = tmp_path_factory.mktemp("graphs")
    process = Interpreter()
    process.run(PROGRAM, folder=str(folder), steps=STEPS, held=HELD, leaks=LEAK)
    process.close()
    values = np.load(folder / "values.npy")
    (folder / "values.npy").unlink()
    return folder, values


def norms(values: np.ndarray) -> np.ndarray:
    return np.linalg.norm(values.astype(np.float64), axis=1)


def check(found: dict[str, Any], values: np.ndarray, channel: int) -> None:
    assert found["steps"] == list(range(1, STEPS + 1))
    assert found["past_steps"] == list(range(STEPS))
    delta = norms(values[1:].astype("f8") - values[:-1])[:, channel]
    np.testing.assert_allclose(found["norm"], norms(values[1:])[:, channel], rtol=0.023)
    np.testing.assert_allclose(found["delta_norm"], delta, rtol=0.023)
    np.testing.assert_array_equal(np.array(found["delta_norm"]) == 0, delta == 0)


def channels_of(here: Board, run: str) -> list[dict[str, Any]]:
    return [here.json("/channel", run=run, layer="net/dense", channel=one) for one in range(4)]


def test_a_recorded_training(trained: tuple[Path, np.ndarray]) -> None:
    logdir, values = trained
    assert (values[HELD:, :, 1] == 0).all()

    def look(here: Board) -> Any:
        runs = {one["name"]: one for one in here.json("/index")["runs"]}
        return runs["run"], channels_of(here, "run"), here.json("/violations", run="run")

    run, channels, violations = in_both(logdir, look)
    assert (run["source"], run["records"], run["closed"], run["notes"]) == ("sink", STEPS, True, [])
    for channel, found in enumerate(channels):
        check(found, values, channel)
    assert [found["state"][-1] for found in channels] == ["moving", "pruned", "moving", "frozen"]
    (violation,) = violations["violations"]
    moved = values[LEAK, :, 3] != values[HELD, :, 3]
    assert (violation["variable"], violation["channel"]) == ("net/dense/w", 3)
    assert (violation["first_step"], violation["cause"]) == (LEAK, "unmasked_update")
    assert (violation["elements"], violation["held"]) == (moved.sum(), 5)
    assert violation["largest"] == abs(values[LEAK] - values[HELD])[:, 3].max()


def test_a_writer_of_the_users_own(trained: tuple[Path, np.ndarray]) -> None:
    logdir, values = trained

    def look(here: Board) -> Any:
        runs = {one["name"]: one for one in here.json("/index")["runs"]}
        return runs["own"], channels_of(here, "own")

    run, channels = in_both(logdir, look)
    assert (run["source"], run["records"]) == ("summary", STEPS)
    for channel, found in enumerate(channels):
        check(found, values, channel)
    assert channels[1]["state"][HELD - 1 :] == ["pruned"] * (STEPS - HELD + 1)


def test_the_same_values_give_the_same_picture_as_eager_ones(
    trained: tuple[Path, np.ndarray],
) -> None:
    import tensorflow as tf

    from tb_pastnet import Masks, Recorder

    logdir, values = trained
    weight = tf.Variable(values[0])
    masks = Masks({"net/dense/w": weight}, enforce=False)
    with Recorder(
        logdir / "eager", {"net/dense/w": weight}, every=1, masks=masks, initial_step=0
    ) as recorder:
        for step in range(1, STEPS + 1):
            if step == HELD:
                masks.prune("dense/w", channels=[1])
                masks.freeze("dense/w", channels=[3])
            weight.assign(values[step])
            recorder.record(step)

    def look(here: Board) -> Any:
        return channels_of(here, "run"), channels_of(here, "eager")

    for graph, eager in zip(*in_both(logdir, look), strict=True):
        for key in ("steps", "past_steps", "norm", "delta_norm", "state"):
            assert graph[key] == eager[key], key
