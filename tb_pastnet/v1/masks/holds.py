"""The masks of one variable of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from tb_pastnet.keras.masks.hold import Hold, Mask
from tb_pastnet.v1.graph.graph_variables import MASK_VARIABLES
from tb_pastnet.v1.graph.session import Site


class SessionHold(Hold):
    """Masks and reference as variables of the graph, made at once: later it may be finalized.

    Args:
        variable: a `SessionVariable` that can be written.
        site: its graph.
    """

    def __init__(self, variable: Any, site: Site) -> None:
        self.variable = variable
        shape = variable.shape.as_list()
        self._zeros = np.zeros((), variable.dtype.as_numpy_dtype)  # fits parts as well

        def own(word: str, dtype: Any, initial: Any) -> Any:
            group = "masks" if dtype == tf.bool else "weights"
            name = f"{variable.name}/{word}"
            return site.own(initial(shape, dtype), name, MASK_VARIABLES, group)

        with site.building():
            self.kept = own("kept", tf.bool, tf.ones)
            self.through = own("through", tf.bool, tf.ones)
            self.reference = own("reference", variable.dtype, tf.zeros)

    @property
    def variables(self) -> tuple[Any, Any, Any]:
        """What has to be saved of it, tf.Variables."""
        kept, through, reference = (
            one.variable.parts[0] for one in (self.kept, self.through, self.reference)
        )
        return kept, through, reference

    def closed(self) -> Any:
        """Builds whether it holds anything."""
        return ~tf.reduce_all(self.through.read_value())

    def put_back(self, through: Any, before: Any) -> Any:
        """Builds what sets held elements to what they were; see `Hold.restore`."""
        value = tf.where_v2(through, self.variable.read_value(), before)
        return self.variable.variable.assign(value)

    def zero(self) -> None:
        """See `Hold`. By arrays, as no op may be built any more."""
        value = self.variable.numpy()
        self.variable.assign(np.where(self.kept.numpy(), value, np.zeros((), value.dtype)))

    def _refer(self, already: Mask) -> None:
        self.reference.assign(np.where(already, self.reference.numpy(), self.variable.numpy()))

    def mask_parts(self, gradients: Sequence[Any]) -> list[Any]:
        """Builds the gradients with zeros at what is held.

        Args:
            gradients: one a part of the variable: a tensor, tf.IndexedSlices, or None.
        """
        pieces = self.variable.variable.split(self.through.read_value())
        return [
            gradient if gradient is None else self.mask_gradient(gradient, through)
            for gradient, through in zip(gradients, pieces, strict=True)
        ]
