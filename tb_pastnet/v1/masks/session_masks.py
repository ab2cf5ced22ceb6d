"""The masks of a graph, as in its session, and updates that leave held weights unchanged."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from tb_pastnet.core.mask_input import Mask
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.masks.variable_masks import VariableMasks
from tb_pastnet.keras.model.tf_weights import TFWeight
from tb_pastnet.record.masks.mask_table import MaskRegistry, MaskTable
from tb_pastnet.record.weight import names_of
from tb_pastnet.v1.graph.graph_variables import MASK_VARIABLES, VARIABLES, GraphVariable
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

        def own(initial: tf.Tensor, word: str, group: str) -> Any:
            return site.own(initial, f"{variable.name}/{word}", MASK_VARIABLES, group=group)

        with site.building():
            self.kept = own(tf.ones(shape, tf.bool), "kept", "masks")
            self.through = own(tf.ones(shape, tf.bool), "through", "masks")
            self.held = own(tf.zeros(shape, variable.dtype), "reference", "weights")

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
        self.variable.assign(np.where(self.kept.numpy(), self.variable.numpy(), self._zeros))

    def held_now(self) -> Any:
        """Builds a copy of held values: an identity of a reference variable is the variable."""
        return tf.where_v2(self.kept, self.variable, self._zeros)

    def _hold(self, frozen: Mask, already: Mask | None = None) -> None:
        value = np.where(frozen, self.variable.numpy(), self._zeros)
        self.held.assign(value if already is None else np.where(already, self.held.numpy(), value))

    def mask_parts(self, gradients: Mapping[str, Any]) -> dict[str, Any]:
        """Builds gradients with zeros at held elements, by the names of the variable's parts."""
        whole = self.variable.variable
        pieces = zip(whole.holders, whole.split(self.through.read_value()), strict=True)
        return {
            name: self.mask_gradient(gradients[name], through)
            for name, through in pieces
            if gradients.get(name) is not None
        }


class SessionMasks(MaskTable):
    """Masks that are made at once (`made`, by name); they count once they hold something.

    Masks restored by a Saver are read when a session is first used, and by `refresh`.
    """

    def __init__(self, weights: Sequence[TFWeight], site: GraphSession) -> None:
        trained = [weight for weight in weights if not weight.statistic]
        self.made = {weight.name: GraphVariableMasks(weight.variable, site) for weight in trained}
        super().__init__(weights, MaskRegistry(), lambda weight: self.made[weight.name])
        self.site = site
        self._seen: Any = lambda: None
        self._closed = site.function(lambda: [masks.closed() for masks in self.made.values()])

    @property
    def masked(self) -> Mapping[str, GraphVariableMasks]:
        """The masks of variables with elements that are or were held."""
        self.look()
        return super().masked

    def look(self) -> None:
        """Reads all masks if the session isn't the same as the last time."""
        session = self.site.current
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
        self._seen = weakref.ref(self.site.current)
        for name, held in zip(self.made, closed, strict=True):
            if held:
                self.storage_for(name)
        self.registry.version += 1


class Holding:
    """Builds updates with ops around them that hold weights; enforces changes of masks.

    `built` has the names of all these operations. Slots are found when an update is built.
    """

    def __init__(self, state: SessionMasks) -> None:
        self._state = state
        self._slots: dict[str, list[tuple[GraphWeight, Any]]] = {}
        self.built: set[str] = set()

    def clear_slots(self, variable: GraphWeight, where: Mask) -> None:
        """Resets the slots of some elements to their initial values."""
        for slot, fresh in self._slots.get(variable.name, ()):
            slot.assign(np.where(where, self._state.site.run(fresh), slot.numpy()))

    def enforce_now(self, masks: VariableMasks) -> None:
        """Sets pruned weights to zero, before another update."""
        masks.put_back()

    def masks_of(self, names: Set[str]) -> list[GraphVariableMasks]:
        """The masks of variables, by the names of operations that hold any of their parts."""
        masks = self._state.made.values()
        return [each for each in masks if not names.isdisjoint(each.variable.variable.holders)]

    def around(self, update: Callable[[], Any], masks: Sequence[GraphVariableMasks]) -> Any:
        """Builds an update. Held weights are copied before it and restored after it.

        `update` returns an operation, tensors, or a structure of them, or InvalidArgument is
        raised; `masks` are those of the variables that it writes.
        """
        graph = tf.get_default_graph()
        first = len(graph.get_operations())
        held = [(each.through.read_value(), each.held_now()) for each in masks]
        with tf.control_dependencies([tensor for pair in held for tensor in pair]):
            built = update()
        done = [_operation(result) for result in tf.nest.flatten(built)]
        if not done or None in done:
            raise InvalidArgument(
                f"Could not hold weights in an update: expected an operation or tensors, got "
                f"{built!r:.80}. Return the result from the function, such as the train_op."
            )
        with tf.control_dependencies(done):
            put_back = [each.put_back_to(*pair) for each, pair in zip(masks, held, strict=True)]
        self.built |= {operation.name for operation in graph.get_operations()[first:]}
        return tf.group(*done, *put_back)

    def add_slots(self, optimizer: tf.train.Optimizer, variable: GraphVariable) -> None:
        """Adds the slots of a variable in an optimizer, to be cleared with its elements."""
        for name in optimizer.get_slot_names():
            slots = tuple(optimizer.get_slot(part, name) for part in variable.parts)
            if any(slot is None for slot in slots):
                continue
            joined = GraphVariable(slots[0].op.name, slots, trainable=False)
            if joined.shape == variable.shape:
                face = GraphWeight(self._state.site, joined, writable=True)
                with self._state.site.building():
                    fresh = joined.join([slot.initial_value for slot in slots])
                self._slots.setdefault(variable.name, []).append((face, fresh))


def _operation(built: Any) -> Any:
    """The operation of a result, None if it isn't one: `assign` may return a variable."""
    op = built if isinstance(built, tf.Operation) else getattr(built, "op", None)
    return None if op is None or op.type in VARIABLES else op


class HeldOptimizer(tf.train.Optimizer):
    """Wraps an optimizer: its updates leave held weights unchanged."""

    def __init__(self, optimizer: tf.train.Optimizer, holding: Holding) -> None:
        super().__init__(use_locking=False, name=optimizer.get_name())
        self._inner = optimizer
        self._holding = holding

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """Gradients and variables, with zeros for held weights: clip them after this."""
        pairs = self._inner.compute_gradients(*args, **kwargs)
        gradients = {variable.op.name: gradient for gradient, variable in pairs}
        masked: dict[str, Any] = {}
        for masks in self._holding.masks_of(gradients.keys()):
            masked |= masks.mask_parts(gradients)
        return [(masked.get(part.op.name, gradient), part) for gradient, part in pairs]

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        """The update, which restores held weights after it."""
        pairs = list(grads_and_vars)
        names = {variable.op.name for gradient, variable in pairs if gradient is not None}
        masks = self._holding.masks_of(names)
        update = self._holding.around(
            lambda: self._inner.apply_gradients(pairs, global_step, name), masks
        )
        for each in masks:
            self._holding.add_slots(self._inner, each.variable.variable)
        return update

    def get_slot(self, var: Any, name: str) -> Any:
        """The slot of the optimizer."""
        return self._inner.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """Those of the optimizer."""
        return list(self._inner.get_slot_names())

    def variables(self) -> list[Any]:
        """Those of the optimizer."""
        return list(self._inner.variables())
