"""The masks of a model, kept beside it: saved with it, hidden from its variables.

What derives from Keras's Loss is saved in .keras and .weights.h5 files, and a PythonState in
checkpoints of TensorFlow; but it is neither among a model's variables nor in the way of a stock
Keras that loads the file.
"""

from __future__ import annotations

import io
import json
import math
import weakref
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.train.layers.weight import MaskedWeight
from tb_pastnet.train.masks.hold import Hold, Mask
from tb_pastnet.train.masks.resumed import Resumed
from tb_pastnet.train.model.variables import Recorded

Sums = npt.NDArray[np.uint32]

_HEAD = "head"
STORED = "masks"


class MaskState(keras.losses.Loss, tf.train.experimental.PythonState):
    """The holds of a model's variables.

    Args:
        variables: all that could have masks.

    Attributes:
        version: grows with every change that is made through it.
        generation: grows when a variable gets its first mask: older traces don't know of it.
        origin: fingerprint of the values at the beginning, "" where it isn't known yet; saved.
    """

    def __init__(self, variables: Sequence[Recorded]) -> None:
        super().__init__(name="pastnet_masks")
        self._table = _Table(variables)
        self.version = 0
        self.generation = 0
        self.origin = ""

    @property
    def keeper(self) -> Any:
        """What keeps the masks in force, None before there is one."""
        return self._table.keeper

    @keeper.setter
    def keeper(self, keeper: Any) -> None:
        self._table.keeper = keeper

    @property
    def holds(self) -> Mapping[str, Hold]:
        """The variables with masks, by id."""
        return self._table.holds

    @property
    def variables(self) -> Mapping[str, Recorded]:
        """All variables, by id."""
        return self._table.variables

    def hold_of(self, variable: Any) -> Hold | None:
        """The masks of a tf.Variable, None where it has none."""
        return self._table.by_object.get(id(variable))

    def hold(self, name: str) -> Hold:
        """The masks of a variable, made where there are none.

        Args:
            name: its id.
        """
        if name not in self.holds:
            hold = Hold(self.variables[name].found.variable)
            self._table.add(name, hold)
            self.generation += 1
        return self.holds[name]

    def read(self, name: str) -> tuple[Mask, Mask]:
        """Kept and trainable of a variable, bool arrays; all ones where it has no masks."""
        if name in self.holds:
            return self.holds[name].read()
        own = self.variables[name].found.variable
        if isinstance(own, MaskedWeight):
            return own.kept, own.trainable
        shape = self.variables[name].text.shape
        return np.ones(shape, bool), np.ones(shape, bool)

    def tell(self, observe: Callable[[], None]) -> None:
        """Lets an audit know of each change when it is made, before another step.

        Args:
            observe: a bound method, kept weakly.
        """
        self._table.observers.append(weakref.WeakMethod(observe))

    def settle(self) -> None:
        """Compares held values with those of a file that was loaded, and holds them as they are.

        Not while it is loaded: Keras may load the masks before the weights.
        """
        saved, self._table.loaded = self._table.loaded, None
        if saved is None:
            return
        for hold in self.holds.values():
            hold.refer_anew()
        self._table.resumed = Resumed.of(
            {n: (s, check_sums(self.holds[n], self.variables[n].axis)) for n, s in saved.items()}
        )

    @property
    def resumed(self) -> Resumed | None:
        """What became of masks and held values when they were loaded; None where they weren't."""
        self.settle()
        return self._table.resumed

    def write(self, name: str, kept: Mask, trainable: Mask) -> None:
        """Sets the masks of a variable."""
        self.settle()
        self.hold(name).write(kept, trainable)
        self.version += 1
        for reference in list(self._table.observers):
            observe = reference()
            if observe is None:
                self._table.observers.remove(reference)
            else:
                observe()

    def serialize(self) -> bytes:
        """Masks and check sums of what is held, one bit an element and mask, before compression.

        Nothing for `tf.saved_model.save`, which asks while it builds a graph: it never brings back
        what Python keeps.
        """
        if not tf.executing_eagerly():
            return b""
        shapes = {name: self.variables[name].text.shape for name in self.holds}
        head = json.dumps({"origin": self.origin, "variables": shapes})
        arrays: dict[str, npt.NDArray[Any]] = {_HEAD: np.frombuffer(head.encode(), np.uint8)}
        for at, (name, hold) in enumerate(self.holds.items()):
            arrays[f"kept_{at}"] = np.packbits(hold.kept.numpy())
            arrays[f"through_{at}"] = np.packbits(hold.through.numpy())
            arrays[f"held_{at}"] = check_sums(hold, self.variables[name].axis)
        stream = io.BytesIO()
        np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
        return stream.getvalue()

    def deserialize(self, string_value: bytes) -> None:
        """Reads what `serialize` wrote, maybe before the weights are loaded.

        Raises:
            InvalidArgument: the masks are of other variables.
        """
        if not string_value:
            return
        with np.load(io.BytesIO(string_value), allow_pickle=False) as stored:
            arrays = dict(stored)
        head = json.loads(arrays[_HEAD].tobytes())
        names = head["variables"]
        for name, shape in names.items():
            self._check_fits(name, tuple(shape))
        self.origin = head["origin"]
        masks = {
            name: [_unpack(arrays[f"{mask}_{at}"], shape) for mask in ("kept", "through")]
            for at, (name, shape) in enumerate(names.items())
        }
        for name in {*self.holds, *names}:
            hold = self.hold(name)
            ones = np.ones(hold.variable.shape, bool)
            kept, through = masks.get(name, (ones, ones))
            hold.kept.assign(kept)
            hold.through.assign(through)
        self._table.loaded = {name: arrays[f"held_{at}"] for at, name in enumerate(names)}
        self.version += 1
        if self.keeper is not None:
            self.keeper.retrace()

    def _check_fits(self, name: str, shape: tuple[int, ...]) -> None:
        record = self.variables.get(name)
        if record is None or record.text.shape != shape:
            got = "no such variable" if record is None else f"shape {record.text.shape}"
            raise InvalidArgument(
                f"Could not load the masks of {name!r}: expected a variable of shape {shape}, as "
                f"the file says, got {got} in the model. Load them into a model of the same "
                f"structure."
            )

    def save_own_variables(self, store: Any) -> None:
        """Writes the masks into a .keras or .weights.h5 file. Keras calls it."""
        store[STORED] = np.frombuffer(self.serialize(), np.uint8)

    def load_own_variables(self, store: Any) -> None:
        """Reads the masks; a file without any, of a stock Keras, leaves them. Keras calls it.

        Raises:
            InvalidArgument: the file's masks are of other variables.
        """
        if STORED in store.keys():  # noqa: SIM118 - Keras's store has no `in`
            # An index, as h5py's data sets are not quite arrays.
            self.deserialize(store[STORED][()].tobytes())


class _Table:
    """What trackers shall not look into."""

    def __init__(self, variables: Sequence[Recorded]) -> None:
        self.variables = {record.text.id: record for record in variables}
        self.holds: dict[str, Hold] = {}
        self.by_object: dict[int, Hold] = {}
        self.loaded: dict[str, Sums] | None = None
        self.resumed: Resumed | None = None
        self.keeper: Any = None
        self.observers: list[weakref.WeakMethod[Callable[[], None]]] = []

    def add(self, name: str, hold: Hold) -> None:
        self.holds[name] = hold
        self.by_object[id(hold.variable)] = hold


def check_sums(hold: Hold, axis: ChannelAxis) -> Sums:
    """CRC-32 of the bytes of the held elements of each channel.

    Args:
        hold: masks and variable.
        axis: how it splits into channels.

    Returns:
        uint32 of shape (channels,).
    """
    values = np.ascontiguousarray(axis.split(hold.variable.numpy()))
    held = axis.split(~hold.through.numpy())
    return np.array(
        [zlib.crc32(row[flags].tobytes()) for row, flags in zip(values, held, strict=True)],
        np.uint32,
    )


def _unpack(packed: npt.NDArray[np.uint8], shape: Sequence[int]) -> Mask:
    return np.unpackbits(packed, count=math.prod(shape)).astype(bool).reshape(tuple(shape))
