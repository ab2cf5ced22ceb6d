"""Snapshots of a training, to rewind to: in the memory of the host, or in a file."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.masks.array_file import read_array, untrusted, write_arrays
from tb_pastnet.record.masks.packed import origin_in
from tb_pastnet.record.weight import Array, Weight

WEIGHTS, LEARNING_RATE = "weights", "learning_rate"
_HEAD = "head"

State = tuple[str, tuple[Array, ...]]
"""The class of an optimizer, and its values: those of its variables, or what a room packs."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A state of a training to return to, in the memory of the host.

    Attributes:
        weights: the values of all floating variables by id, including statistics.
        optimizers: the class and the values of the variables of each optimizer, in their order.
        step: the `iterations` of the optimizer that has made most updates; 0 without one.
        origin: equal in runs whose weights come from the same initial values.

    Example:
        >>> import tempfile
        >>> early = Snapshot({"dense/kernel": np.ones((3, 2))}, (), 100, "")  # masks.snapshot()
        >>> path = tempfile.mkdtemp() + "/early.npz"
        >>> early.save(path)
        >>> Snapshot.load(path).step
        100
    """

    weights: Mapping[str, Array]
    optimizers: tuple[State, ...]
    step: int
    origin: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it into a file of NumPy arrays, usually named `*.npz`.

        It replaces an earlier file once it is complete: if that fails, the earlier one stays.

        Raises:
            OSError: the file can't be written.
        """
        arrays = {f"weight_{number}": value for number, value in enumerate(self.weights.values())}
        slots = [value for _, values in self.optimizers for value in values]
        arrays |= {f"optimizer_{number}": value for number, value in enumerate(slots)}
        head = {
            "weights": list(self.weights),
            "optimizers": [(kind, len(values)) for kind, values in self.optimizers],
            "step": self.step,
            "origin": self.origin,
            # NumPy's files have no bfloat16.
            "dtypes": {name: value.dtype.name for name, value in arrays.items()},
        }
        arrays[_HEAD] = np.frombuffer(json.dumps(head).encode(), np.uint8)
        write_arrays(path, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Snapshot:
        """Reads what `save` wrote. Its arrays are read-only.

        Raises:
            InvalidArgument: the file isn't a snapshot, or is damaged.
            OSError: the file can't be read.
        """
        task = f"load a snapshot from {Path(path).name!r}"
        expected = "a file written by Snapshot.save"
        mend = "Check the path, or take the snapshot again."
        with Path(path).open("rb") as file, untrusted(task, expected, mend):
            return cls._read(file)

    @classmethod
    def _read(cls, file: BinaryIO) -> Snapshot:
        with zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
            if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
                raise ValueError("deflated arrays")
            # So together they aren't larger than the file.
            if sum(info.file_size for info in infos) > file.seek(0, os.SEEK_END):
                raise ValueError("sizes beyond its own")
            names = [(info.filename.removesuffix(".npy"), info.file_size) for info in infos]
            arrays = {name: read_array(archive, name, size) for name, size in names}
        head = json.loads(arrays.pop(_HEAD).tobytes())
        for name, dtype in head.get("dtypes", {}).items():
            arrays[name] = arrays[name].view(dtype)
        weights = {name: arrays[f"weight_{number}"] for number, name in enumerate(head["weights"])}
        count = len(arrays) - len(weights)
        slots = iter([arrays[f"optimizer_{number}"] for number in range(count)])
        # Files of earlier versions have one optimizer, and not always its class.
        counts = head.get("optimizers", [(head.get("kind", ""), count)])
        optimizers = tuple((kind, tuple(islice(slots, own))) for kind, own in counts)
        return cls(weights, optimizers, int(head["step"]), origin_in(head))


class Rewound(NamedTuple):
    """The result of `Masks.rewind`.

    Attributes:
        weights: how many weights were set back; 0 for only the learning rate.
        held: how many stayed as they were, pruned or frozen.
        statistics: how many variables of statistics were set back.
        slots: "snapshot" if the optimizers' slots were set back, "initial" if some got their
            initial values because the snapshot has none of this optimizer, "kept" if they stayed.
        step: the most `iterations` of an optimizer, before and after.
    """

    weights: int
    held: int
    statistics: int
    slots: str
    step: tuple[int, int]


def states_of(optimizers: Sequence[Any], snapshot: Snapshot) -> list[State]:
    """The state of each optimizer: the first one left of its class, else the first one left.

    An optimizer that the snapshot doesn't have starts again: its state is empty.
    """
    left = list(range(len(snapshot.optimizers)))
    places: dict[int, int] = {}
    for same in True, False:
        for number, optimizer in enumerate(optimizers):
            kind = type(optimizer).__name__
            fits = [each for each in left if not same or snapshot.optimizers[each][0] == kind]
            if fits and number not in places:
                places[number] = fits[0]
                left.remove(fits[0])
    numbers = range(len(optimizers))
    return [snapshot.optimizers[places[each]] if each in places else ("", ()) for each in numbers]


def check_snapshot(weights: Mapping[str, Weight], snapshot: Any, what: str) -> None:
    """Raises InvalidArgument if a snapshot isn't of these weights, or `what` is invalid."""
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
    shapes = {name: weight.shape for name, weight in weights.items()}
    given = {name: value.shape for name, value in snapshot.weights.items()}
    for name in {**shapes, **given}:
        if shapes.get(name) != given.get(name):
            raise InvalidArgument(
                f"Could not rewind {name!r}: expected shape {shapes.get(name)} as in the model, "
                f"got {given.get(name)} in the snapshot. Take the snapshot from the same model."
            )
