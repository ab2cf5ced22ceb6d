"""Updates of a graph that leave held weights unchanged, and the slots of its optimizers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from tb_pastnet.core.mask_input import Mask
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.masks.variable_masks import VariableMasks
from tb_pastnet.v1.graph.graph_variables import GraphVariable
from tb_pastnet.v1.graph.session import GraphSession, GraphWeight
from tb_pastnet.v1.masks.session_masks import GraphVariableMasks

_STORAGE = ("VarHandleOp", "Variable", "VariableV2")
Pairs = Sequence[tuple[Any, Any]]


class Holding:
    """Builds updates with ops around them that hold weights; enforces changes of masks.

    `built` has the names of all these operations. Slots are found when an update is built.
    """

    def __init__(self, masks: Iterable[GraphVariableMasks], site: GraphSession) -> None:
        self._masks = tuple(masks)
        self._site = site
        self._slots: dict[str, list[tuple[GraphWeight, Any]]] = {}
        self.built: set[str] = set()

    def clear_slots(self, variable: GraphWeight, where: Mask) -> None:
        """Resets the slots of some elements to their initial values."""
        for slot, fresh in self._slots.get(variable.name, ()):
            slot.assign(np.where(where, self._site.run(fresh), slot.numpy()))

    def enforce_now(self, masks: VariableMasks) -> None:
        """Sets pruned weights to zero, before another update."""
        masks.put_back()

    def around(
        self, update: Callable[[], Any], masks: Sequence[GraphVariableMasks] | None = None
    ) -> Any:
        """Builds an update. Held weights are copied before it and restored after it.

        `update` returns an operation, tensors, or a structure of them, or InvalidArgument is
        raised; `masks` are those of the variables that it writes, None: all.
        """
        masks = self._masks if masks is None else masks
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

    def mask(self, pairs: Pairs) -> list[tuple[Any, Any]]:
        """Builds gradients with zeros for held weights; a gradient may be None."""
        gradients = {variable.op.name: gradient for gradient, variable in pairs}
        masked: dict[str, Any] = {}
        for masks in self._of(gradients):
            names = masks.variable.variable.holders
            free = masks.mask_parts([gradients.get(name) for name in names])
            masked.update(zip(names, free, strict=True))
        return [(masked.get(part.op.name, gradient), part) for gradient, part in pairs]

    def apply(self, optimizer: tf.train.Optimizer, pairs: Pairs, build: Callable[[], Any]) -> Any:
        """Builds the update of an optimizer with a function that calls its `apply_gradients`."""
        masks = self._of({variable.op.name for gradient, variable in pairs if gradient is not None})
        done = self.around(build, masks)
        for each in masks:
            self._add_slots(optimizer, each.variable.variable)
        return done

    def _add_slots(self, optimizer: tf.train.Optimizer, variable: GraphVariable) -> None:
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

    def _of(self, names: Iterable[str]) -> list[GraphVariableMasks]:
        written = set(names)
        return [each for each in self._masks if written & {*each.variable.variable.holders}]


def _operation(built: Any) -> Any:
    """The operation of a result, None if it isn't one: `assign` may return a variable."""
    op = built if isinstance(built, tf.Operation) else getattr(built, "op", None)
    return None if op is None or op.type in _STORAGE else op


class HeldOptimizer(tf.train.Optimizer):
    """Wraps an optimizer: its updates leave held weights unchanged."""

    def __init__(self, optimizer: tf.train.Optimizer, holding: Holding) -> None:
        super().__init__(use_locking=False, name=optimizer.get_name())
        self._inner = optimizer
        self._holding = holding

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """Gradients and variables, with zeros for held weights: clip them after this."""
        return self._holding.mask(self._inner.compute_gradients(*args, **kwargs))

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        """The update, which restores held weights after it."""
        pairs = list(grads_and_vars)
        return self._holding.apply(
            self._inner, pairs, lambda: self._inner.apply_gradients(pairs, global_step, name)
        )

    def get_slot(self, var: Any, name: str) -> Any:
        """The slot of the optimizer."""
        return self._inner.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """Those of the optimizer."""
        return list(self._inner.get_slot_names())

    def variables(self) -> list[Any]:
        """Those of the optimizer."""
        return list(self._inner.variables())
