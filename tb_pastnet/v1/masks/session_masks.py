"""The masks of a graph, as in its session."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from tb_pastnet.core.mask_input import Mask
from tb_pastnet.keras.masks.variable_masks import VariableMasks
from tb_pastnet.keras.model.tf_weights import TFWeight
from tb_pastnet.record.masks.mask_table import MaskRegistry, MaskTable
from tb_pastnet.record.weight import names_of
from tb_pastnet.v1.graph.graph_variables import MASK_VARIABLES
from tb_pastnet.v1.graph.session import GraphSession, GraphWeight


class GraphVariableMasks(VariableMasks):
    """Masks and held values as variables of the graph, made at once: it may be finalized later.

    Updates restore the value from before them, because a Saver sets variables without notice.
    """

    def __init__(self, variable: GraphWeight, site: GraphSession) -> None:
        self.variable = variable
        self.enforced, self.generation, self._before = True, 0, None
        shape = variable.shape.as_list()
        self._zeros = np.zeros((), variable.dtype.as_numpy_dtype)  # fits parts as well

        def own(word: str, dtype: Any, initial: Any) -> Any:
            group = "masks" if dtype == tf.bool else "weights"
            name = f"{variable.name}/{word}"
            return site.own(initial(shape, dtype), name, MASK_VARIABLES, group)

        with site.building():
            self.kept = own("kept", tf.bool, tf.ones)
            self.through = own("through", tf.bool, tf.ones)
            self.held = own("reference", variable.dtype, tf.zeros)

    @property
    def variables(self) -> list[Any]:
        """The tf.Variables to save."""
        own = self.kept, self.through, self.held
        return [each.variable.parts[0] for each in own]

    def closed(self) -> Any:
        """Builds whether it holds anything."""
        return ~tf.reduce_all(self.through.read_value())

    def put_back_to(self, through: tf.Tensor, held: tf.Tensor) -> Any:
        """Builds the op that restores held elements; see `VariableMasks.restore`."""
        value = tf.where_v2(through, self.variable.read_value(), held)
        return self.variable.variable.assign(value)

    def put_back(self) -> None:
        """See `VariableMasks`: prunes. With arrays, because no op may be built any more."""
        value = self.variable.numpy()
        self.variable.assign(np.where(self.kept.numpy(), value, np.zeros((), value.dtype)))

    def held_now(self) -> Any:
        """Builds a copy of held values: an identity of a reference variable is the variable."""
        return tf.where_v2(self.kept, self.variable, self._zeros)

    def _hold(self, frozen: Mask, already: Mask | None = None) -> None:
        value = self.variable.numpy()
        value = np.where(frozen, value, np.zeros((), value.dtype))
        self.held.assign(value if already is None else np.where(already, self.held.numpy(), value))

    def mask_parts(self, gradients: Sequence[Any]) -> list[Any]:
        """Builds the gradients of the variable's parts with zeros at held elements."""
        pieces = self.variable.variable.split(self.through.read_value())
        return [
            gradient if gradient is None else self.mask_gradient(gradient, through)
            for gradient, through in zip(gradients, pieces, strict=True)
        ]


class SessionMasks(MaskTable):
    """Masks that are made at once (`made`, by name); they count once they hold something.

    Masks restored by a Saver are read when a session is first used, and by `refresh`.
    """

    def __init__(self, weights: Sequence[TFWeight], site: GraphSession) -> None:
        trained = [weight for weight in weights if not weight.statistic]
        self.made = {weight.name: GraphVariableMasks(weight.variable, site) for weight in trained}
        self._registry = MaskRegistry()
        super().__init__(weights, self._registry, lambda weight: self.made[weight.name])
        self._site = site
        self._seen: Any = lambda: None
        self._closed = site.function(lambda: [masks.closed() for masks in self.made.values()])

    @property
    def masked(self) -> Mapping[str, GraphVariableMasks]:
        """The masks of variables with elements that are or were held."""
        self.look()
        return super().masked

    def look(self) -> None:
        """Reads all masks if the session isn't the same as the last time."""
        session = self._site.current
        if session is not None and session is not self._seen():
            self.refresh()

    def chosen(self, names: Iterable[Any] | None) -> list[GraphVariableMasks]:
        """The masks of variables, by names or themselves; None: all."""
        own = [self.weights[name] for name in self.made]
        ids = self.made if names is None else names_of(own).all(names)
        return [self.made[name] for name in ids]

    def read(self, name: str) -> tuple[Mask, Mask]:
        """See `MaskTable`."""
        return self.made[name].read() if name in self.made else super().read(name)

    def refresh(self) -> None:
        """Reads all masks from the session; raises InvalidArgument if they have no values."""
        closed = self._closed()
        self._seen = weakref.ref(self._site.current)
        for name, held in zip(self.made, closed, strict=True):
            if held:
                self.storage_for(name)
        self._registry.version += 1
