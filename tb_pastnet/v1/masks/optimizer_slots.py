"""What TF1 optimizers keep of variables, such as momentums."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from tb_pastnet.core.selection import Mask
from tb_pastnet.keras.masks.variable_masks import VariableMasks
from tb_pastnet.v1.graph.graph_variables import GraphVariable
from tb_pastnet.v1.graph.session import GraphSession, GraphWeight


class OptimizerSlots:
    """The slots of variables, found when an update was built; puts changes of masks in force."""

    def __init__(self, site: GraphSession) -> None:
        self._site = site
        self._slots: dict[str, list[tuple[GraphWeight, Any]]] = {}

    def add(self, optimizer: tf.train.Optimizer, variable: GraphVariable) -> None:
        """Takes up those that an optimizer has of a variable, after its `apply_gradients`."""
        for name in optimizer.get_slot_names():
            slots = tuple(optimizer.get_slot(part, name) for part in variable.parts)
            if any(slot is None for slot in slots):
                continue
            joined = GraphVariable(slots[0].op.name, slots, trainable=False)
            if joined.shape == variable.shape:
                face = GraphWeight(self._site, joined, writable=True)
                with self._site.building():
                    fresh = joined.join([slot.initial_value for slot in slots])
                self._slots.setdefault(variable.name, []).append((face, fresh))

    def clear_slots(self, variable: GraphWeight, where: Mask) -> None:
        """Gives some elements the values that new weights begin with."""
        for slot, fresh in self._slots.get(variable.name, ()):
            slot.assign(np.where(where, self._site.run(fresh), slot.numpy()))

    def enforce_now(self, masks: VariableMasks, *, first: bool) -> None:
        """Sets what is pruned to zero, before another update."""
        masks.zero()
