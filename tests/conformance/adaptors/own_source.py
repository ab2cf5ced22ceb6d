"""A throw-away framework: what a `Weight` and a `Source` bring is all that the suite needs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.follow_pairs import follow_pairs
from tb_pastnet.core.names import Called, Names
from tb_pastnet.record.array_recorder import ArrayRecorder, ArrayWeight, RatedSource
from tb_pastnet.record.options import Options
from tb_pastnet.record.overhead_timer import metered
from tb_pastnet.record.weight import Network
from tests.conformance.room import Room


class Tensor:
    """The framework's own: a box with an array."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array


class Recorder(ArrayRecorder):
    """Of boxes, by name."""

    def __init__(
        self, logdir: str, boxes: dict[str, Tensor], rate: Any = None, trainable: Any = None,
        kept: Any = None, **given: Any,
    ) -> None:  # fmt: skip
        options, weights = Options(**given), []
        names = Names({name: Called(box.array.shape) for name, box in boxes.items()})
        axes = names.keyed(options.channel_axis, "channel_axis")
        moved = follow_pairs(names, options.follows, names.all)
        for name, box in boxes.items():
            axis = explicit_axis(axes.get(name, ()), box.array.shape, name)
            form, read = (box.array.shape, box.array.dtype.name), partial(getattr, box, "array")
            weights.append(ArrayWeight(name, *form, axis, read, follows=name in moved))
        network = Network.of(weights, options.variables, follows=moved)
        masks = names.keyed(trainable, "trainable"), names.keyed(kept, "kept")

        def source_of(resting: Any) -> RatedSource:
            return RatedSource(network, rate, resting=resting)

        super().__init__(logdir, network, source_of, options.schedule(), *masks, options)

    @metered("Could not declare masks")
    def declare(self, trainable: Any, kept: Any) -> None:
        self._declare(trainable, kept)
        self.observe()


class Adaptor(Room):
    def recorder_of(self, **settings: Any) -> Any:
        boxes = {name: Tensor(array) for name, array in self.arrays.items()}
        rate = None if self.rates is None else lambda step: self.used
        return Recorder(self.logdir, boxes, rate=rate, **settings)
