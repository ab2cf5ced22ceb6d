"""One training on one device, on two, and in two workers: one picture, written once."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from tests.both_loaders import in_both
from tests.masked import SHAPES
from tests.tensorboards import Board

STEPS = 12
RUNS = ("one", "devices", "workers")

PROGRAM = """
import keras
import numpy as np
import tensorflow as tf
import tb_pastnet as pastnet
from tests import masked

if name == "one":
    strategy = tf.distribute.get_strategy()
x, y = masked.data(8)

def part(context):
    share = slice(context.replica_id_in_sync_group, None, context.num_replicas_in_sync)
    return tf.constant(x[share]), tf.constant(y[share])

with strategy.scope():
    model = masked.network()
    optimizer = keras.optimizers.SGD(0.05, momentum=0.9)
    optimizer.build(model.trainable_variables)
masks = pastnet.Masks(model, optimizer)
masks.freeze("one/kernel", channels=[1])
values = [model.get_weights()]
recorder = pastnet.Recorder(
    f"{logdir}/{name}", model, every=1, learning_rate=optimizer, probe=x, initial_step=0
)

def update(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((model(x, training=True) - y) ** 2) / 8
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)

def traced():
    return tf.function(lambda: strategy.run(update, batch))

batch = (tf.constant(x), tf.constant(y))
if name != "one":
    batch = strategy.experimental_distribute_values_from_function(part)
step = traced()
for number in range(1, steps + 1):
    if number == 4:
        masks.prune_smallest(0.4)
        step = traced()
    step()
    if number == 8:  # frozen by mask, but set by hand
        kernel = model.layers[0].kernel
        kernel.assign(kernel.numpy() + np.eye(6, 5, k=1, dtype="f"))
    values.append(model.get_weights())
    recorder.record(number)
    if number == 10:
        masks.thaw("one/kernel")
assert recorder.flush(60)
recorder.close()
if globals().get("worker", 0) == 0:
    np.savez(f"{weights}/{name}.npz", *[array for at in values for array in at])
    np.savez(f"{weights}/{name}.masks.npz", **{n.replace("/", "_"): masks.kept[n] for n in masks.kept})
print(recorder.last_step)
"""


@pytest.fixture(scope="module")
def trained(
    tmp_path_factory: pytest.TempPathFactory, two_devices: Any, two_workers: Any
) -> tuple[Path, Path, list[str]]:
    logdir, weights = tmp_path_factory.mktemp("log"), tmp_path_factory.mktemp("weights")
    given = {"logdir": str(logdir), "weights": str(weights), "steps": STEPS}
    for name in RUNS[:2]:
        two_devices.run(PROGRAM, name=name, **given)
    said = two_workers.run(PROGRAM, name="workers", **given)
    return logdir, weights, said


def read(weights: Path, run: str) -> list[dict[str, np.ndarray]]:
    """The weights that the program fetched, from step 0 on."""
    with np.load(weights / f"{run}.npz") as stored:
        arrays = [stored[f"arr_{number}"] for number in range(len(stored.files))]
    return [
        dict(zip(SHAPES, arrays[at : at + len(SHAPES)], strict=True))
        for at in range(0, len(arrays), len(SHAPES))
    ]


def channels(here: Board, run: str) -> dict[str, list[dict[str, Any]]]:
    """All that is told of each channel of the kernels."""
    return {
        name: [
            here.json("/channel", run=run, layer=name.partition("/")[0], channel=number)
            for number in range(SHAPES[name][-1])
        ]
        for name in ("one/kernel", "two/kernel")
    }


def picture(here: Board, run: str) -> dict[str, Any]:
    return {
        "channels": channels(here, run),
        "violations": here.json("/violations", run=run)["violations"],
        "layers": table(here, run),
        "function": table(here, run, function=1),
    }


def table(here: Board, run: str, **query: Any) -> list[dict[str, str]]:
    text = here.get("/export.csv", run=run, **query).get_data(as_text=True)
    return list(csv.DictReader(io.StringIO(text)))


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


@pytest.fixture(scope="module")
def pictures(trained: Any) -> dict[str, Any]:
    return in_both(trained[0], lambda here: {run: picture(here, run) for run in RUNS})


def test_two_workers_write_one_run_with_each_step_once(trained: Any) -> None:
    logdir, _, said = trained
    assert said == [f"{STEPS}\n", "0\n"]  # the other one doesn't even follow the steps
    assert len(list((logdir / "workers").iterdir())) == 1

    def look(here: Board) -> Any:
        runs = here.json("/index")["runs"]
        assert len({run["origin"] for run in runs}) == 1
        return {run["name"]: run for run in runs}

    run = in_both(logdir, look)["workers"]
    assert (run["first_step"], run["last_step"], run["records"]) == (1, STEPS, STEPS)
    assert (len(run["lineages"]), run["closed"], run["notes"]) == (1, True, [])
    assert run["account"]["offered"] == run["account"]["shown"] == STEPS


@pytest.mark.parametrize("run", RUNS)
def test_the_numbers_are_those_of_numpy(trained: Any, pictures: Any, run: str) -> None:
    values = read(trained[1], run)
    for name, row in pictures[run]["channels"].items():
        for number, told in enumerate(row):
            assert told["steps"] == list(range(1, STEPS + 1))
            assert told["past_steps"] == list(range(STEPS))
            now = np.array([at[name][:, number] for at in values], np.float64)
            norms, moved = np.linalg.norm(now, axis=1), np.linalg.norm(np.diff(now, axis=0), axis=1)
            assert told["norm"] == pytest.approx(norms[1:], rel=0.023)
            assert told["delta_norm"] == pytest.approx(moved, rel=0.023)
            assert [delta == 0 for delta in told["delta_norm"]] == (moved == 0).tolist()


@pytest.mark.parametrize("run", RUNS[1:])
def test_the_picture_is_that_of_one_device(trained: Any, pictures: Any, run: str) -> None:
    _, weights, _ = trained
    one, many = pictures["one"], pictures[run]
    for before, now in zip(read(weights, "one"), read(weights, run), strict=True):
        for name in SHAPES:
            np.testing.assert_allclose(now[name], before[name], rtol=1e-4, atol=1e-6)
    with np.load(weights / "one.masks.npz") as kept, np.load(weights / f"{run}.masks.npz") as other:
        assert all((kept[name] == other[name]).all() for name in kept.files)
    for name, row in one["channels"].items():
        for told, other in zip(row, many["channels"][name], strict=True):
            assert other["state"] == told["state"]
            for share in ("kept", "trainable"):
                assert other[share] == told[share]
    assert many["violations"] == one["violations"]
    assert [without(row, "mean_delta") for row in many["layers"]] == [
        without(row, "mean_delta") for row in one["layers"]
    ]
    for measure in ("relative", "cosine"):
        told = [[float(row[measure]) for row in which["function"]] for which in (one, many)]
        np.testing.assert_allclose(told[1], told[0], rtol=1e-4)


def test_what_was_planted_is_in_it(pictures: Any) -> None:
    (violation,) = pictures["workers"]["violations"]
    assert (violation["variable"], violation["channel"]) == ("one/kernel", 1)
    assert (violation["first_step"], violation["elements"], violation["largest"]) == (8, 1, 1.0)
    layers = pictures["workers"]["layers"]
    pruned = {int(row["step"]): int(row["pruned_weights"]) for row in layers}
    assert pruned[3] == 0 < pruned[4]
