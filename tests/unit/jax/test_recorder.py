"""A pytree is recorded while it is trained, and training is none the wiser."""

from __future__ import annotations

import functools
import gc
import inspect
import re
import subprocess
import sys
import weakref

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.core import thinning
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.overhead_timer import OverheadTimer

jax = pytest.importorskip("jax", reason="its room is tested where JAX is installed")
jnp = pytest.importorskip("jax.numpy", reason="its room is tested where JAX is installed")
optax = pytest.importorskip("optax", reason="it trains what is recorded here")
Recorder = pastnet.jax.Recorder

X = np.random.default_rng(0).normal(size=(32, 5)).astype(np.float32)
Y = np.random.default_rng(1).normal(size=(32, 3)).astype(np.float32)


def mlp(seed=0, dtype=jnp.float32):
    keys = jax.random.split(jax.random.key(seed), 2)
    return {
        "hidden": {
            "kernel": jax.random.normal(keys[0], (5, 8), dtype),
            "bias": jnp.zeros(8, dtype),
        },
        "out": {"kernel": jax.random.normal(keys[1], (8, 3), dtype), "bias": jnp.zeros(3, dtype)},
    }


def loss_of(params, x, y):
    hidden = jax.nn.tanh(x @ params["hidden"]["kernel"] + params["hidden"]["bias"])
    return jnp.mean((hidden @ params["out"]["kernel"] + params["out"]["bias"] - y) ** 2)


def step_of(optimizer, loss=loss_of):
    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, state, x, y):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    return step


def train(optimizer, params, steps, record=None, loss=loss_of):
    state, step, losses = optimizer.init(params), step_of(optimizer, loss), []
    for number in range(1, steps + 1):
        params, state, value = step(params, state, X, Y)
        losses.append(value)
        if record is not None:
            record(number, params, state)
    return params, np.array(losses)


def only_run(logdir):
    (run,) = pastnet.read(logdir).runs.values()
    return run


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd"])
def test_losses_and_weights_are_those_without_a_recorder(name, tmp_path):
    options = {"momentum": 0.9} if name == "sgd" else {}
    optimizer = getattr(optax, name)(1e-2, **options)
    bare, losses = train(optimizer, mlp(), 20)
    params = mlp()
    with Recorder(tmp_path, params, every=3) as recorder:
        seen, recorded = train(
            optimizer, params, 20, lambda step, params, _: recorder.record(step, params)
        )
        assert recorder.flush()
        assert recorder.notes.counts() == {}
    np.testing.assert_array_equal(recorded.view(np.int32), losses.view(np.int32))
    jax.tree.map(np.testing.assert_array_equal, seen, bare)
    assert only_run(tmp_path).steps.tolist() == [1, 3, 6, 9, 12, 15, 18]


@pytest.mark.parametrize("past", ["previous", "record", 2])
def test_a_donated_buffer_is_reused_at_every_step(past, tmp_path):
    params = {"w": jnp.ones((256, 256))}
    step = jax.jit(lambda tree: {"w": tree["w"] * 0.99}, donate_argnums=0)
    with Recorder(tmp_path, params, every=3, past=past) as recorder:
        place = params["w"].unsafe_buffer_pointer()
        for number in range(1, 20):
            donated, params = params, step(params)
            assert donated["w"].is_deleted()
            assert params["w"].unsafe_buffer_pointer() == place, number
            recorder.record(number, params)
        assert recorder.records > 5


def test_nothing_of_a_step_is_held_beyond_it(tmp_path):
    params, rate = {"w": jnp.ones((3, 2))}, jnp.float32(0.5)
    first = weakref.ref(params["w"])
    with Recorder(tmp_path, params, every=1, trainable={"w": False}) as recorder:
        params = {"w": params["w"] * 1}
        assert first() is None
        seen = [weakref.ref(params["w"]), weakref.ref(rate)]
        recorder.record(1, params, rate)
        recorder.sync(params)
        recorder.declare(params, trainable={"w": True})
        recorder.restart(0, params)
        assert recorder.notes.counts() == {}
        del params, rate
        gc.collect()
        assert [reference() for reference in seen] == [None, None]


def test_a_compiled_loop_records_by_a_callback(tmp_path):
    from jax.experimental import io_callback

    params = {"w": jnp.ones((3, 2))}
    recorder = Recorder(tmp_path, params, every=2)

    def body(params, number):
        params = {"w": params["w"] * 0.5}
        io_callback(recorder.record, None, number, params, ordered=True)
        return params, None

    jax.jit(lambda params: jax.lax.scan(body, params, jnp.arange(1, 5)))(params)
    jax.effects_barrier()
    recorder.close()
    assert recorder.notes.counts() == {}
    series = only_run(tmp_path).variables["w"]
    assert series.steps.tolist() == [1, 2, 4]
    expected = [[0.5**step * 3**0.5] * 2 for step in (1, 2, 4)]
    np.testing.assert_allclose(series.delta_norm, expected, rtol=0.023)


def test_of_several_processes_the_first_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(jax, "process_index", lambda: 1)
    params, read = mlp(), []
    with Recorder(
        tmp_path / "run", params, every=1, trainable={"hidden": False, "out": True}
    ) as each:
        assert each._source._copies == {}
        monkeypatch.setattr("tb_pastnet.jax.tree.Tree.read", read.append)
        for step in range(1, 4):
            each.record(step, params)
        each.sync(params)
        assert each.flush()
        assert each.notes.counts() == {}
    assert read == []
    assert not (tmp_path / "run").exists()


def test_between_records_nothing_is_read(tmp_path, monkeypatch):
    params, read = mlp(), []
    with Recorder(tmp_path, params, every=10) as recorder:
        for number in range(1, 6):
            recorder.record(number, params)
        monkeypatch.setattr(recorder._tree, "read", read.append)
        monkeypatch.setattr(recorder._tree, "_flat", read.append)
        for number in range(6, 9):
            recorder.record(number, params)
    assert read == []


@pytest.mark.parametrize("word", ["number", "schedule", "state"])
def test_the_learning_rate_of_a_step(word, tmp_path):
    schedule = optax.linear_schedule(1.0, 0.0, 10)
    params = mlp()
    optimizer = optax.inject_hyperparams(optax.sgd)(schedule)
    given = {"number": 0.25, "schedule": lambda step: schedule(step - 1), "state": None}[word]

    def record(step, params, state):
        rate = state.hyperparams["learning_rate"] if word == "state" else None
        recorder.record(step, params, rate)

    with Recorder(tmp_path, params, every=1, learning_rate=given) as recorder:
        train(optimizer, params, 4, record)
    expected = [0.25] * 4 if word == "number" else [1.0, 0.9, 0.8, 0.7]
    np.testing.assert_allclose(only_run(tmp_path).learning_rates, expected, rtol=1e-6)


def test_what_cannot_be_recorded_is_left_out_with_a_reason(tmp_path):
    params = {
        "w": jnp.ones((2, 2)),
        "ids": jnp.arange(3),
        "key": jax.random.key(0),
        "none": jnp.zeros((0, 2)),
        "rate": 0.5,
        "act": jax.nn.relu,
        "nothing": None,
    }
    with Recorder(tmp_path, params, every=1) as recorder:
        recorder.record(1, params)
    run = only_run(tmp_path)
    assert list(run.variables) == ["w"]
    assert run.skipped == {
        "ids": "its dtype int32 isn't a floating one",
        "key": "it is a PRNG key",
        "none": "it has no elements",
    }


CHANGES = {
    "a leaf more": (
        lambda tree: {**tree, "new": jnp.ones(2)},
        "expected the 4 leaves of the Recorder's params, got 5, with new. Make a new",
    ),
    "a leaf less": (
        lambda tree: {"hidden": tree["hidden"]},
        "expected the 4 leaves of .*, got 2, without out/bias, out/kernel. Make a new",
    ),
    "another container": (
        lambda tree: {**tree, "out": [tree["out"]["kernel"], tree["out"]["bias"]]},
        "without out/bias, out/kernel and with out/0, out/1: 'out' is a list instead of a dict",
    ),
    "None": (
        lambda tree: {**tree, "out": {**tree["out"], "bias": None}},
        r"without out/bias: 'out/bias' is None instead of float32\[3\]",
    ),
    "an array": (lambda tree: jnp.ones(3), r"the root is float32\[3\] instead of a dict"),
    "another dtype": (
        lambda tree: jax.tree.map(lambda leaf: leaf.astype(jnp.float16), tree),
        r"Could not read 'hidden/bias': expected float32\[8\], got float16\[8\]\. Make a new",
    ),
    "another shape": (
        lambda tree: {**tree, "out": {"kernel": jnp.ones((8, 4)), "bias": jnp.ones(4)}},
        r"Could not read 'out/bias': expected float32\[3\], got float32\[4\]. Make a new",
    ),
}


@pytest.mark.parametrize("word", CHANGES)
def test_another_structure_is_counted_once_and_never_raised(word, tmp_path, caplog):
    change, text = CHANGES[word]
    params = mlp()
    with Recorder(tmp_path, params, every=2) as recorder:
        for step in range(1, 5):
            recorder.record(step, params)
        count = recorder.records
        for step in range(5, 9):
            recorder.record(step, change(params))
        assert recorder.records == count
        for step in range(9, 13):
            recorder.record(step, params)
        assert recorder.records > count
        notes = recorder.notes.counts()
    lines = [line for line in caplog.messages if "Make a new Recorder" in line]
    # Once for records, once for the copies before them.
    assert len(lines) == len([note for note in notes if "Make a new Recorder" in note])
    assert 1 <= len(lines) <= 2
    for line in lines:
        assert "InvalidArgument: Could not read" in line
        assert re.search(text, line), line


def test_a_deleted_array_is_counted(tmp_path, caplog):
    params = mlp()
    with Recorder(tmp_path, params, every=1) as recorder:
        params["out"]["kernel"].delete()
        recorder.record(1, params)
        assert recorder.records == 0
    assert any("deleted" in line for line in caplog.messages)


def test_waiting_for_training_is_no_overhead(tmp_path, monkeypatch):
    clock = [0.0]
    timer = functools.partial(OverheadTimer, lambda: clock[0])
    monkeypatch.setattr("tb_pastnet.record.schedule.OverheadTimer", timer)

    def wait(values):
        clock[0] += 1000

    params = mlp()
    with Recorder(tmp_path, params, every=2) as recorder:
        monkeypatch.setattr(jax, "block_until_ready", wait)
        for step in range(1, 9):
            clock[0] += 1
            recorder.record(step, params)
        assert recorder.overhead.share == 0
        assert recorder.overhead.training > 5000


def test_an_array_alone_is_recorded(tmp_path):
    with Recorder(tmp_path, jnp.ones((3, 2)), every=1) as recorder:
        recorder.record(1, jnp.ones((3, 2)) * 2)
        assert recorder.notes.counts() == {}
    (layer,) = only_run(tmp_path).layers.values()
    assert (layer.id, layer.type, list(layer.variables)) == ("params", "", ["params"])


def test_two_leaves_of_one_name(tmp_path):
    params = {"a/b": jnp.ones(2), "a": {"b": jnp.ones(3)}}
    with Recorder(tmp_path, params, every=1) as recorder:
        recorder.record(1, params)
    run = only_run(tmp_path)
    assert (list(run.variables), run.skipped) == (["a/b"], {"a/b": "another leaf has its name"})


def test_a_flush_at_the_end_asks_for_no_weights(tmp_path):
    params = mlp()
    with Recorder(tmp_path, params, every=1, trainable={"hidden": False, "out": True}) as recorder:
        recorder.record(1, params)
        assert recorder.flush(closed=True)
        assert recorder.notes.counts() == {}


SHARDED = """
import os, sys
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec
import tb_pastnet as pastnet

mesh = jax.make_mesh((2,), ("devices",))
spread = NamedSharding(mesh, PartitionSpec("devices"))
whole = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
step = jax.jit(lambda tree: {"w": tree["w"] * 1.5}, donate_argnums=0)
params = {"w": jax.device_put(whole, spread)}
with pastnet.jax.Recorder(sys.argv[1], params, every=1) as recorder:
    donated, params = params, step(params)
    assert donated["w"].is_deleted() and len(params["w"].addressable_shards) == 2
    recorder.record(1, params)
    assert recorder.notes.counts() == {}
(run,) = pastnet.read(sys.argv[1]).runs.values()
expected = np.sqrt(((whole * 0.5) ** 2).sum(0))
np.testing.assert_allclose(run.variables["w"].delta_norm[0], expected, rtol=0.023)

copies = {"w": jax.device_put(whole, NamedSharding(mesh, PartitionSpec()))}
with pastnet.jax.Recorder(sys.argv[1] + "/copies", copies, every=1) as recorder:
    donated, copies = copies, step(copies)
    assert donated["w"].is_deleted() and len(copies["w"].addressable_shards) == 2
    recorder.record(1, copies)
    assert recorder.notes.counts() == {}
run = pastnet.read(sys.argv[1]).runs["copies"]
np.testing.assert_allclose(run.variables["w"].delta_norm[0], expected, rtol=0.023)
"""


def test_arrays_that_lie_on_several_devices_are_recorded(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SHARDED, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


ERRORS = [
    ({"params": {"n": 3}}, InvalidArgument, "expected at least one variable of floating dtype"),
    (
        {"trainable": {"hidden": True}},
        InvalidArgument,
        "Could not use trainable=: expected a pytree that",
    ),
    (
        {"trainable": {"hidden": True}},
        InvalidArgument,
        "the root has the keys hidden instead of hidden, out",
    ),
    ({"trainable": [True, True]}, InvalidArgument, "the root is a list instead of a dict"),
    (
        {"trainable": {"hidden": {"kernel": [True], "bias": True}, "out": True}},
        InvalidArgument,
        r"'hidden/kernel' is a list instead of float32\[5, 8\]",
    ),
    (
        {"trainable": {"hidden": 2, "out": True}},
        InvalidArgument,
        "expected True, False or an array of",
    ),
    ({"kept": {"hidden": True, "out": np.ones(3)}}, InvalidArgument, "expected shape"),
]


@pytest.mark.parametrize(("arguments", "error", "text"), ERRORS)
def test_bad_arguments_are_clear_errors(arguments, error, text, tmp_path):
    with pytest.raises(error, match=text):
        Recorder(tmp_path, **{"params": mlp(), **arguments})


def test_a_step_on_the_device_is_waited_for_as_training(tmp_path):
    callers = []

    class Step:
        def __int__(self):
            callers.append([frame.function for frame in inspect.stack()])
            return 1

    with pastnet.jax.Recorder(tmp_path, {"w": jnp.ones(3)}, every=1) as recorder:
        recorder.record(Step(), {"w": jnp.ones(3)})
        assert recorder.records == 1
    # What `follow` waits for counts as overhead.
    assert callers
    assert not any("follow" in names for names in callers)


def test_a_call_without_params_is_counted_with_its_mend(tmp_path):
    with Recorder(tmp_path, mlp()) as recorder:
        recorder.record(1)
        recorder.record(2)
        assert recorder.notes.counts() == {
            "Could not make a record: UnknownArgument: Could not call record: expected params=, "
            "got none. Write record(params=…).": 2
        }


def test_what_was_left_out_is_not_looked_at_after_a_restart(tmp_path, monkeypatch):
    monkeypatch.setattr(thinning, "CAPACITY", 4)
    params = {"w": jnp.ones((3, 5))}
    held = {"trainable": {"w": False}, "every": 1, "initial_step": 0}
    recorder = pastnet.jax.Recorder(tmp_path, params, **held)
    for step in range(1, 7):  # the last is left out
        recorder.record(step, params)
    recorder.restart(6, params)
    other = {"w": jnp.zeros((3, 5))}
    recorder.declare(other, trainable={"w": True})
    recorder.declare(other, trainable={"w": False})
    recorder.close()
    assert all(run.violations == () for run in pastnet.read(tmp_path).runs.values())


@pytest.mark.parametrize("name", ["_passed", "_timer.passed"])
def test_a_step_whose_short_way_fails_is_made_once(tmp_path, monkeypatch, name):
    params = {"w": jnp.ones((2, 2))}
    recorder = Recorder(tmp_path, params, every=4, initial_step=0)
    *parts, last = name.split(".")
    owner = getattr(recorder, parts[0]) if parts else recorder
    works = getattr(owner, last)

    def fails(*args, **given):
        works(*args, **given)
        raise TimeoutError("of a signal handler")

    for step in range(1, 9):
        params = {"w": params["w"] + 1}
        with monkeypatch.context() as patch:
            if step == 6:
                patch.setattr(owner, last, fails)
            recorder.record(step, params)
    recorder.close()
    (run,) = pastnet.read(tmp_path).runs.values()
    assert len(run.lineages) == 1
    assert run.variables["w"].past_steps.tolist() == [0, 3, 7]
    assert list(run.notes.values()) == [1]
