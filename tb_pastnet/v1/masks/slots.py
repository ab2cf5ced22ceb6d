"""What TF1 optimizers keep of variables, such as momentums."""

from __future__ import annotations

from typing import Any

import numpy as np

from tb_pastnet.keras.masks.hold import Hold, Mask
from tb_pastnet.v1.graph.graph_variables import GraphVariable
from tb_pastnet.v1.graph.session import SessionVariable, Site


class Slots:
    """The slots of variables, found when an update was built; puts changes of masks in force.

    Args:
        site: their graph.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._slots: dict[str, list[tuple[SessionVariable, Any]]] = {}

    def add(self, optimizer: Any, variable: GraphVariable) -> None:
        """Takes up those that an optimizer has of a variable.

        Args:
            optimizer: a tf.train.Optimizer, after its `apply_gradients`.
            variable: whole or partitioned.
        """
        for name in optimizer.get_slot_names():
            slots = tuple(optimizer.get_slot(part, name) for part in variable.parts)
            if any(slot is None for slot in slots):
                continue
            whole = GraphVariable(slots[0].op.name, slots, trainable=False)
            if whole.shape == variable.shape:
                face = SessionVariable(self._site, whole, writable=True)
                with self._site.building():
                    fresh = whole.join([slot.initial_value for slot in slots])
                self._slots.setdefault(variable.name, []).append((face, fresh))

    def clear_slots(self, variable: Any, where: Mask) -> None:
        """Gives some elements the values that new weights begin with.

        Args:
            variable: a `SessionVariable`.
            where: bool array of its shape.
        """
        for slot, fresh in self._slots.get(variable.name, ()):
            slot.assign(np.where(where, self._site.run(fresh), slot.numpy()))

    def enforce_now(self, hold: Hold, *, first: bool) -> None:
        """Sets what is pruned to zero, before another update."""
        hold.zero()
