"""The masks of a model, kept beside it: saved with it, hidden from its variables.

What derives from Keras's Loss is saved in .keras and .weights.h5 files, and a PythonState in
checkpoints of TensorFlow; but it is neither among a model's variables nor in the way of a stock
Keras that loads the file.
"""

from __future__ import annotations

import io
import json
import math
import zlib
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_pastnet.core.axes import ChannelAxis
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.masks.hold import Hold, Mask
from tb_pastnet.keras.masks.resumed import Resumed
from tb_pastnet.keras.masks.table import MaskTable
from tb_pastnet.keras.model.weights import TFWeight

Sums = npt.NDArray[np.uint32]

_HEAD = "head"
STORED = "masks"


class MaskState(MaskTable, keras.losses.Loss, tf.train.experimental.PythonState):
    """The masks of a model's variables.

    Args:
        variables: all that could have masks.
    """

    def __init__(self, variables: Sequence[TFWeight]) -> None:
        MaskTable.__init__(self, variables)
        keras.losses.Loss.__init__(self, name="pastnet_masks")
        self._loaded = _Loaded()

    def settle(self) -> None:
        """Compares held values with those of a file that was loaded, and holds them as they are.

        Not while it is loaded: Keras may load the masks before the weights.
        """
        saved, self._loaded.sums = self._loaded.sums, None
        if saved is None:
            return
        for hold in self.holds.values():
            hold.refer_anew()
        self._loaded.resumed = Resumed.of(
            {n: (s, check_sums(self.holds[n], self.variables[n].axis)) for n, s in saved.items()}
        )

    @property
    def resumed(self) -> Resumed | None:
        """What became of masks and held values when they were loaded; None where they weren't."""
        self.settle()
        return self._loaded.resumed

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
        self._loaded.sums = {name: arrays[f"held_{at}"] for at, name in enumerate(names)}
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


class _Loaded:
    """What trackers shall not look into: check sums of a file, and what they were compared to."""

    def __init__(self) -> None:
        self.sums: dict[str, Sums] | None = None
        self.resumed: Resumed | None = None


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
