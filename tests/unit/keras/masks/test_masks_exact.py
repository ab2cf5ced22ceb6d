"""Held weights under every optimizer of Keras: not one bit moves, and free ones train as ever.

The twin is a stock optimizer on plain variables: the same gradients, and held weights put back by
hand after each step. Free weights are equal to it bit by bit. Where an update uses a norm of the
whole tensor, ours keeps held gradients out of it, so there the twin gets masked gradients.
"""

from __future__ import annotations

from functools import cache

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.masked import (
    Twin,
    bits,
    free,
    gradients,
    held_bits,
    masks_on,
    network,
    own_step,
    values,
)
from tests.sampled import sampled

FEW, MANY = 24, 100
"""Steps at each change, in which all that comes every third or fourth step comes some times, and of a proof."""

OPTIMIZERS = {
    "SGD": ("SGD", {}),
    "momentum": ("SGD", {"momentum": 0.9}),
    "Nesterov": ("SGD", {"momentum": 0.9, "nesterov": True}),
    "Adam": ("Adam", {}),
    "AMSGrad": ("Adam", {"amsgrad": True}),
    "AdamW": ("AdamW", {}),
    "RMSprop": ("RMSprop", {"momentum": 0.9, "centered": True}),
    "Adagrad": ("Adagrad", {}),
    "Adadelta": ("Adadelta", {}),
    "Adamax": ("Adamax", {}),
    "Nadam": ("Nadam", {}),
    "Ftrl": ("Ftrl", {"l1_regularization_strength": 1e-3, "l2_regularization_strength": 1e-3}),
    "Lion": ("Lion", {}),
    "Lamb": ("Lamb", {}),
    "Adafactor": ("Adafactor", {}),
    "Muon": ("Muon", {}),
    "ScheduleFreeAdamW": ("ScheduleFreeAdamW", {}),
}
# An average alone moves nothing: what it follows has to move within the update.
EMA = {"use_ema": True, "ema_momentum": 0.9, "weight_decay": 0.1}
SETTINGS = {
    "plain": {},
    "weight_decay": {"weight_decay": 0.1},
    "clipvalue": {"clipvalue": 0.5},
    "clipnorm": {"clipnorm": 0.5},
    "global_clipnorm": {"global_clipnorm": 0.5},
    "ema_final": {**EMA},
    "ema_overwriting": {**EMA, "ema_overwrite_frequency": 3},
    "accumulation": {"gradient_accumulation_steps": 4},
    "loss_scale": {"loss_scale_factor": 8.0},
}
NORMS = {"Lamb", "Adafactor", "Muon", "clipnorm", "global_clipnorm"}
"""What computes a norm of gradients or updates over a whole tensor, or over all."""

EVERY = [(name, setting) for setting in SETTINGS for name in OPTIMIZERS]
# Every second optimizer, and each setting once: what masks do for a setting is the same under each optimizer.
NOW = [(*pair, FEW) for pair in zip([*OPTIMIZERS][::2], SETTINGS, strict=True)]
LATER = [pytest.param(*pair, MANY, marks=pytest.mark.prove) for pair in EVERY]


@cache
def muon_trains() -> bool:
    """That of Keras 3.10 to 3.12 asks TensorFlow's variables for a path, which they don't have."""
    kernel = keras.Variable(np.ones((2, 2), np.float32))
    try:
        keras.optimizers.Muon(0.05).apply([tf.ones((2, 2))], [kernel])
    except AttributeError:
        return False
    return True


def optimizer(name: str, setting: str = "plain", **more):
    kind, arguments = OPTIMIZERS[name]
    if not hasattr(keras.optimizers, kind):
        pytest.skip(f"Keras {keras.__version__} has no {kind}")
    if kind == "Muon" and not muon_trains():
        pytest.skip(f"Keras {keras.__version__} alone can't train with Muon on TensorFlow")
    return getattr(keras.optimizers, kind)(0.05, **arguments, **SETTINGS[setting], **more)


def trained(name: str, setting: str, *, steps: int = FEW, jit: bool = False, mask: bool):
    """Weights of ours and of the twin, and the masks; `mask` masks the twin's gradients by hand."""
    model = network(optimizer=optimizer(name, setting))
    masks, ours = masks_on(model), model.optimizer
    held, through = held_bits(model, masks), free(masks)
    twin = Twin(values(model), through, optimizer(name, setting))
    ours.build(model.trainable_variables)
    twin.optimizer.build(twin.variables)
    step = own_step(ours, model.trainable_variables, jit=jit)
    stock = own_step(twin.optimizer, twin.variables, jit=jit)
    for given in gradients(steps):
        step(given)
        stock(
            [tf.where(t, g, 0) for t, g in zip(through.values(), given, strict=True)]
            if mask
            else given
        )
        twin.put_back()
        assert {n: bits(v[~through[n]]) for n, v in values(model).items()} == held
    return model, masks, twin, through


@pytest.mark.parametrize(("name", "setting", "steps"), [*NOW, *LATER])
def test_held_weights_stay_and_free_ones_train_as_ever(name, setting, steps):
    mask = not NORMS.isdisjoint({name, setting})
    model, masks, twin, through = trained(name, setting, steps=steps, mask=mask)
    start = values(network())
    for variable, value in values(model).items():
        t = through[variable]
        assert bits(value[t]) == bits(twin.values()[variable][t]), variable
        assert (value[t] != start[variable][t]).any()
    held = held_bits(model, masks)
    model.optimizer.finalize_variable_values(model.trainable_variables)
    assert held_bits(model, masks) == held


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("Lamb", "plain"),
        ("Adafactor", "plain"),
        ("Muon", "plain"),
        ("SGD", "clipnorm"),
        ("SGD", "global_clipnorm"),
    ],
)
def test_only_norms_differ_from_stock(name, setting):
    """What the list above says: with held gradients in the norm, free weights go elsewhere."""
    model, _, twin, through = trained(name, setting, steps=20, mask=False)
    far = [np.abs(values(model)[v] - twin.values()[v])[t].max() for v, t in through.items()]
    assert max(far) > 1e-3


# Others differ in what Keras computes.
@pytest.mark.parametrize(
    "name",
    sampled(["momentum", "Adam", "Ftrl", "Muon"], every=4),
)
def test_under_xla(name):
    model, _, twin, through = trained(name, "plain", jit=True, mask=name in NORMS)
    for variable, value in values(model).items():
        t = through[variable]
        # XLA fuses the mask into the update and may round the rest otherwise.
        np.testing.assert_allclose(value[t], twin.values()[variable][t], rtol=1e-4, atol=1e-6)
