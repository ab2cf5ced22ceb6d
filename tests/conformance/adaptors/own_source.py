"""A throw-away framework: what a `Weight` and a `Source` bring is all that the suite needs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.follow_pairs import follow_pairs
from tb_pastnet.core.names import Called, Names
from tb_pastnet.record.array_recorder import ArrayRecorder, ArrayWeight, RatedSource
from tb_pastnet.record.overhead_timer import metered
from tb_pastnet.record.schedule import Schedule
from tb_pastnet.record.weight import Network
from tests.conformance.room import Room


class Tensor:
    """The framework's own: a box with an array."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array


class Recorder(ArrayRecorder):
    """Of boxes, by name."""

    def __init__(
        self, logdir: str, boxes: dict[str, Tensor], every: int, past: Any = "previous",
        variables: Any = None, channel_axis: Any = None, initial_step: Any = None,
        masks: Any = None, kept: Any = None, rate: Any = None, audit: bool = True,
        budget: Any = None, follows: Any = (), **wishes: Any,
    ) -> None:  # fmt: skip
        schedule, weights = Schedule(every, past, initial_step, budget), []
        names = Names({name: Called(box.array.shape) for name, box in boxes.items()})
        axes = names.keyed(channel_axis, "channel_axis")
        moved = follow_pairs(names, follows, names.all)
        for name, box in boxes.items():
            axis = explicit_axis(axes.get(name, ()), box.array.shape, name)
            form, read = (box.array.shape, box.array.dtype.name), partial(getattr, box, "array")
            weights.append(ArrayWeight(name, *form, axis, read, follows=name in moved))
        source = RatedSource(Network.of(weights, variables, follows=moved), rate)
        given = [names.keyed(masks, "masks"), names.keyed(kept, "kept")]
        wishes = {"on_violation": "log", "log": None, "exit_timeout": 60.0, **wishes}
        super().__init__(logdir, source, schedule, *given, audit=audit, **wishes)

    @metered("Could not declare masks")
    def declare(self, masks: Any, kept: Any) -> None:
        self._declare(masks, kept)
        self.observe()


class Adaptor(Room):
    def recorder_of(self, **settings: Any) -> Any:
        boxes = {name: Tensor(array) for name, array in self.arrays.items()}
        rate = None if self.rates is None else lambda step: self.used
        return Recorder(self.logdir, boxes, rate=rate, **settings)
