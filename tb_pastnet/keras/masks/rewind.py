"""Snapshots of a training, and rewinding to one: weights, or only the learning rate."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.masks.mask_state import MaskState
from tb_pastnet.keras.masks.optimizers import slots_of
from tb_pastnet.keras.model.tf_variable import tf_variable
from tb_pastnet.record.weight import Array

WEIGHTS, LEARNING_RATE = "weights", "learning_rate"
_HEAD = "head"


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A state of a training to return to, in the memory of the host.

    Attributes:
        weights: the values of all floating variables by id, including statistics.
        optimizer: the values of the optimizer's variables in their order; none if it wasn't built,
            when all slots were zero.
        step: the optimizer's `iterations`.
        origin: equal in runs whose weights come from the same initial values.
        kind: the optimizer's class; "" if there was none.

    Example:
        >>> import tempfile
        >>> import tb_pastnet as pastnet
        >>> model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
        >>> model.compile("adam", "mse")
        >>> masks = pastnet.Masks(model)
        >>> masks.snapshot().save(tempfile.mkdtemp() + "/early.npz")
    """

    weights: Mapping[str, Array]
    optimizer: tuple[Array, ...]
    step: int
    origin: str
    kind: str = ""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it into a file of NumPy arrays, usually named `*.npz`."""
        facts = {"step": self.step, "origin": self.origin, "kind": self.kind}
        head = json.dumps({"weights": list(self.weights), **facts})
        arrays: dict[str, Array] = {_HEAD: np.frombuffer(head.encode(), np.uint8)}
        arrays |= {f"weight_{number}": value for number, value in enumerate(self.weights.values())}
        arrays |= {f"optimizer_{number}": value for number, value in enumerate(self.optimizer)}
        with Path(path).open("wb") as file:  # NumPy would append .npz to a name
            np.savez(file, **arrays)  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Snapshot:
        """Reads what `save` wrote.

        Raises:
            InvalidArgument: the file isn't a snapshot.
        """
        try:
            with np.load(Path(path), allow_pickle=False) as stored:
                arrays = dict(stored)
            head = json.loads(arrays.pop(_HEAD).tobytes())
        except (ValueError, KeyError, EOFError) as error:
            raise InvalidArgument(
                f"Could not load a snapshot from {os.fspath(path)!r}: expected a file written by "
                f"Snapshot.save, got another one ({error}). Check the path."
            ) from error
        weights = {name: arrays[f"weight_{number}"] for number, name in enumerate(head["weights"])}
        count = len(arrays) - len(weights)
        optimizer = tuple(arrays[f"optimizer_{number}"] for number in range(count))
        return cls(weights, optimizer, head["step"], head["origin"], head.get("kind", ""))


class Rewound(NamedTuple):
    """The result of `Masks.rewind`.

    Attributes:
        weights: how many weights were set back; 0 for only the learning rate.
        held: how many stayed as they were, pruned or frozen.
        statistics: how many variables of statistics were set back.
        slots: "snapshot" if the optimizer's slots were set back, "zero" if they were set to zero
            because the snapshot has none of this optimizer, "kept" if they stayed.
        step: the optimizer's `iterations` before and after.
    """

    weights: int
    held: int
    statistics: int
    slots: str
    step: tuple[int, int]


def take(state: MaskState) -> Snapshot:
    """Copies weights and optimizer to the host."""
    state.look()
    optimizer = state.optimizer()
    variables = [] if optimizer is None else optimizer.variables
    built = optimizer is not None and optimizer.built
    return Snapshot(
        {name: weight.variable.numpy().copy() for name, weight in state.weights.items()},
        tuple(np.array(tf_variable(variable).numpy()) for variable in variables) if built else (),
        _step(optimizer),
        state.origin,
        "" if optimizer is None else type(optimizer).__name__,
    )


def rewind(state: MaskState, snapshot: Snapshot, what: str) -> Rewound:
    """Goes back to a snapshot, see `Masks.rewind`."""
    state.look()
    _check(state, snapshot, what)
    optimizer = state.optimizer()
    start = _step(optimizer)
    if what == LEARNING_RATE:
        _rewind_clock(optimizer, snapshot)
        return Rewound(0, 0, 0, "kept", (start, _step(optimizer)))
    weights = held = statistics = 0
    for name, weight in state.weights.items():
        variable, value = weight.variable, snapshot.weights[name]
        kept, trainable = state.read(name)
        through = kept & trainable
        variable.assign(np.where(through, value, variable.numpy()))
        weights += int(through.sum()) * (not weight.statistic)
        held += int((~through).sum())
        statistics += weight.statistic
    slots = _rewind_slots(state, optimizer, snapshot)
    state.origin = snapshot.origin
    return Rewound(weights, held, statistics, slots, (start, _step(optimizer)))


def _rewind_slots(
    state: MaskState, optimizer: keras.optimizers.Optimizer | None, snapshot: Snapshot
) -> str:
    if optimizer is None or not optimizer.built:
        return "zero"
    variables = [tf_variable(variable) for variable in optimizer.variables]
    shapes = [tuple(variable.shape) for variable in variables]
    # Files of earlier versions don't have its class.
    same = snapshot.kind in ("", type(optimizer).__name__)
    if same and [value.shape for value in snapshot.optimizer] == shapes:
        for variable, value in zip(variables, snapshot.optimizer, strict=True):
            variable.assign(value)
        for masks in state.masked.values():
            for slot in slots_of(optimizer, masks.variable).values():
                pruned = ~masks.kept.numpy()
                slot.assign(np.where(pruned, np.zeros((), slot.dtype.as_numpy_dtype), slot.numpy()))
        return "snapshot"
    for weight in state.weights.values():
        for slot in slots_of(optimizer, weight.variable).values():
            slot.assign(tf.zeros_like(slot))
    _rewind_clock(optimizer, snapshot)
    return "zero"


def _rewind_clock(optimizer: keras.optimizers.Optimizer | None, snapshot: Snapshot) -> None:
    """Sets back the steps, so a schedule replays, and a learning rate that is a variable."""
    if optimizer is None:
        return
    optimizer.iterations.assign(snapshot.step)
    rate = optimizer._learning_rate
    is_rate = [tf_variable(variable) is tf_variable(rate) for variable in optimizer.variables]
    if isinstance(rate, keras.Variable) and True in is_rate and len(snapshot.optimizer) > 1:
        rate.assign(snapshot.optimizer[is_rate.index(True)])


def _step(optimizer: keras.optimizers.Optimizer | None) -> int:
    return 0 if optimizer is None else int(tf.convert_to_tensor(optimizer.iterations))


def _check(state: MaskState, snapshot: Snapshot, what: str) -> None:
    if what not in (WEIGHTS, LEARNING_RATE):
        raise InvalidArgument(
            f"Could not rewind: expected what= {WEIGHTS!r} or {LEARNING_RATE!r}, got {what!r}. "
            f"'weights' sets back remaining weights, 'learning_rate' only the schedule."
        )
    if not isinstance(snapshot, Snapshot):
        raise InvalidArgument(
            f"Could not rewind: expected a Snapshot, got {type(snapshot).__name__}. Take one with "
            f"masks.snapshot(), or read one with Snapshot.load(path)."
        )
    shapes = {name: weight.shape for name, weight in state.weights.items()}
    given = {name: value.shape for name, value in snapshot.weights.items()}
    for name in {**shapes, **given}:
        if shapes.get(name) != given.get(name):
            raise InvalidArgument(
                f"Could not rewind {name!r}: expected shape {shapes.get(name)} as in the model, "
                f"got {given.get(name)} in the snapshot. Take the snapshot from the same model."
            )
