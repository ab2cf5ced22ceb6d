"""The same weights at the same steps: the records of each framework are the same, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import tb_pastnet as pastnet
from tests.recorded import read_one

jnp = pytest.importorskip("jax.numpy", reason="its room is tested where JAX is installed")

FAMILIES = {
    "dense/kernel": ((7, 16), -1),
    "dense/bias": ((16,), 0),
    "conv/kernel": ((3, 3, 4, 8), -1),
    "conv_transpose/kernel": ((3, 3, 8, 4), -2),
    "depthwise/kernel": ((3, 3, 4, 2), (-2, -1)),
    "embedding/embeddings": ((20, 6), 0),
    "query/kernel": ((8, 2, 4), -2),
    "output/kernel": ((2, 4, 8), 0),
    "lstm/kernel": ((5, 12), -1),
    "norm/gamma": ((9,), 0),
    "temperature/scale": ((), ()),
    "wide/kernel": ((300, 900), -1),
    "long/kernel": ((4, 5000), 0),
}
STEPS = 5


def values():
    """Of each step all weights; some stand still, and some are odd."""
    rng = np.random.default_rng(0)
    now = {
        name: np.asarray(rng.normal(size=shape)).astype(np.float32)
        for name, (shape, _) in FAMILIES.items()
    }
    steps = [now]
    for _ in range(STEPS):
        now = {
            name: np.asarray(
                np.where(rng.random(array.shape) < 0.5, array, array * np.float32(1.001))
            )
            for name, array in now.items()
        }
        now["dense/kernel"][0, 3], now["conv/kernel"][0, 0, 0, 1] = np.nan, 1e-42
        steps.append(now)
    return steps


def by_numpy(logdir, steps, options):
    arrays = dict(steps[0])
    weights = {name: lambda name=name: arrays[name] for name in arrays}
    with pastnet.numpy.Recorder(logdir, weights, **options) as recorder:
        for step in range(1, STEPS + 1):
            arrays.update(steps[step])
            recorder.record(step)


def tree_of(arrays):
    return {
        layer: {own: jnp.asarray(array)}
        for name, array in arrays.items()
        for layer, own in [name.split("/")]
        if layer != "dense"
    } | {"dense": {own: jnp.asarray(arrays[f"dense/{own}"]) for own in ("kernel", "bias")}}


def by_jax(logdir, steps, options):
    with pastnet.jax.Recorder(logdir, tree_of(steps[0]), **options) as recorder:
        for step in range(1, STEPS + 1):
            recorder.record(step, tree_of(steps[step]))


def by_tensorflow(logdir, steps, options):
    tf = pytest.importorskip("tensorflow", reason="its records are what others are compared with")
    variables = {name: tf.Variable(array) for name, array in steps[0].items()}
    with pastnet.Recorder(logdir, variables, **options) as recorder:
        for step in range(1, STEPS + 1):
            for name, variable in variables.items():
                variable.assign(steps[step][name])
            recorder.record(step)


def by_torch(logdir, steps, options):
    torch = pytest.importorskip("torch", reason="its records are compared where it is installed")
    model = torch.nn.Module()
    parameters = {}
    for name, array in steps[0].items():
        layer, own = name.split("/")
        if not hasattr(model, layer):
            model.add_module(layer, torch.nn.Module())
        parameters[name] = torch.nn.Parameter(torch.tensor(array))
        getattr(model, layer).register_parameter(own, parameters[name])
    with pastnet.torch.Recorder(logdir, model, **options) as recorder:
        for step in range(1, STEPS + 1):
            with torch.no_grad():
                for name, parameter in parameters.items():
                    parameter.copy_(torch.tensor(steps[step][name]))
            recorder.record(step)


@pytest.mark.parametrize("fast", ["1", "0"], ids=["numba", "without"])
def test_records_are_bit_identical(fast, tmp_path, monkeypatch):
    monkeypatch.setenv("PASTNET_FAST", fast)
    # Without numba TensorFlow sums in float32, which may round a code to the next.
    apart = {"by_tensorflow": 1 - int(fast)}
    steps = values()
    axes = {name: axis for name, (_, axis) in FAMILIES.items()}
    options = {"every": 1, "channel_axis": axes}
    codes = {}
    for record in (by_numpy, by_jax, by_torch, by_tensorflow):
        record(tmp_path / record.__name__, steps, options)
        codes[record.__name__] = read_one(tmp_path / record.__name__).codes
    first = codes.pop("by_numpy")
    assert sorted(first) == sorted(FAMILIES)
    for name, other in codes.items():
        for variable, records in first.items():
            assert records.keys() == other[variable].keys(), variable
            for number, record in records.items():
                off = abs(record.astype(int) - other[variable][number].astype(int))
                assert off.max() <= apart.get(name, 0), (name, variable, number)
