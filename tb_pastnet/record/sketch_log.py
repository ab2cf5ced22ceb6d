"""Sketches that wait to be written, on the sink's thread."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tb_pastnet.core.sketch import BUCKETS
from tb_pastnet.format import limits
from tb_pastnet.format.sketches import Sketches, encode_sketches, whole_sketches
from tb_pastnet.format.tags import TAG_SKETCHES
from tb_pastnet.record.messages import Message

Floats = npt.NDArray[np.float64]


class SketchLog:
    """The sketches of one lineage: `variables` numbers those in its description that have any.

    The first that are written are whole; of later ones, the differences from these are.
    """

    def __init__(self, lineage: int, variables: tuple[int, ...]) -> None:
        self._lineage = lineage
        self._variables = variables
        self._waiting: list[tuple[int, int, Floats]] = []
        # The first ones, not rounded as they are stored: what hasn't moved has no difference from
        # them. None until they are written; those that are packed may not be yet.
        self._first: Floats | None = None
        self._packed: Floats | None = None

    def add(self, sequence: int, step: int, values: Floats) -> None:
        """Takes the sketches of a record, (variables, 64)."""
        self._waiting.append((sequence, step, values))

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting

    def pack(self) -> Iterator[Message]:
        """Packs what waits; it keeps waiting until `done`."""
        waiting, self._packed = list(self._waiting), self._first
        if waiting and self._packed is None:
            sequence, step, self._packed = waiting.pop(0)
            yield self._message(whole_sketches(self._variables, sequence, step, self._packed))
        if self._packed is None:
            return
        most = max(1, limits.MAX_VALUES // (BUCKETS * max(1, len(self._variables))))
        for start in range(0, len(waiting), most):
            part = zip(*waiting[start : start + most], strict=True)
            (sequences, steps, values) = part
            numbers = np.array(sequences, np.int64), np.array(steps, np.int64)
            # What wasn't finite then has all of its later values.
            apart = np.stack(values) - np.nan_to_num(self._packed)
            grid = np.zeros(apart.shape[:2])  # is chosen when they are encoded
            yield self._message(Sketches(self._variables, *numbers, apart, False, grid))

    def done(self) -> None:
        """What was packed is written."""
        self._first, self._waiting = self._packed, []

    def drop(self) -> None:
        """Drops what waits."""
        self._waiting = []

    def _message(self, sketches: Sketches) -> Message:
        step = int(sketches.steps[-1])
        sealed = encode_sketches(sketches, tag=TAG_SKETCHES, step=step, lineage=self._lineage)
        return Message(TAG_SKETCHES, step, sealed)
