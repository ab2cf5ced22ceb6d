"""The hook on an optimizer: around each update it takes what is held, and puts it back.

It stands on the innermost optimizer's `apply`, so that loss scaling, gradient accumulation,
clipping, weight decay, constraints and moving averages all lie inside. Held gradients are zeroed
before they are clipped. That is exact for every optimizer of Keras, where masking gradients alone
lets momentum, weight decay and averages through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import keras
import tensorflow as tf

from tb_pastnet.keras.masks.slots import averages_of
from tb_pastnet.keras.masks.variable_masks import VariableMasks
from tb_pastnet.keras.model.walk import tf_variable

_MARK = "_pastnet_hook"


class Holder(Protocol):
    """What the hook asks at trace time."""

    generation: int

    def storage_of(self, variable: tf.Variable) -> VariableMasks | None:
        """The masks of a tf.Variable, None where it has none."""


class Hook:
    """Holds what a holder's masks hold, on one optimizer.

    Args:
        optimizer: of Keras, innermost.
        holder: knows the masks.

    Attributes:
        applied: tf.Variable, int64: updates that went through the hook.
        generation: tf.Variable, int64: that of the holder when the last step was traced.
    """

    def __init__(self, optimizer: keras.optimizers.Optimizer, holder: Holder) -> None:
        self.optimizer = optimizer
        self.holder = holder
        with tf.init_scope(), optimizer._distribution_strategy.scope():
            self.applied = self._counter("applied")
            self.generation = self._counter("generation")
        original = optimizer.apply
        setattr(optimizer, _MARK, _Untracked(self))
        optimizer.apply = self._around(original)

    @staticmethod
    def _counter(name: str) -> Any:
        first = tf.VariableAggregation.ONLY_FIRST_REPLICA
        return tf.Variable(0, dtype=tf.int64, trainable=False, name=name, aggregation=first)

    def _around(self, original: Callable[..., None]) -> Callable[..., None]:
        def apply(grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None) -> None:
            grads, variables = list(grads), self._trained()
            if trainable_variables is not None:
                variables = trainable_variables = list(trainable_variables)
            # An overwriting average writes all variables, also those without a gradient.
            moved = {id(m): m for m in self._masks([*variables, *self._trained()]) if m}
            through = {key: tf.convert_to_tensor(masks.through) for key, masks in moved.items()}
            # Not strict: Keras has an error of its own for too few gradients.
            pairs = zip(grads, self._masks(variables), strict=False)
            for number, (gradient, masks) in enumerate(pairs):
                if masks is not None and gradient is not None:
                    grads[number] = masks.mask_gradient(gradient, through[id(masks)])
            held = [(through[key], masks.held_now()) for key, masks in moved.items()]
            original(grads, trainable_variables)
            self._restore(list(moved.values()), held)
            self.applied.assign_add(1, read_value=False)
            self.generation.assign(self.holder.generation, read_value=False)

        apart: Callable[..., None] = tf.autograph.experimental.do_not_convert(apply)
        return apart

    def _trained(self) -> list[Any]:
        return list(getattr(self.optimizer, "_trainable_variables", ()))

    def _masks(self, variables: Sequence[Any]) -> list[VariableMasks | None]:
        return [self.holder.storage_of(tf_variable(variable)) for variable in variables]

    def _restore(self, moved: Sequence[VariableMasks], held: Sequence[tuple[Any, Any]]) -> None:
        averages = averages_of(self.optimizer)

        def put_back(strategy: Any, values: Sequence[Any]) -> None:
            for masks, value in zip(moved, values, strict=True):
                for variable in (masks.variable, averages.get(id(masks.variable))):
                    if variable is not None:
                        strategy.extended.update(variable, masks.restore, args=value, group=False)

        if moved:
            merged(put_back, self.optimizer, held)


def merged(
    action: Callable[..., None], optimizer: keras.optimizers.Optimizer, *arguments: Any
) -> None:
    """Does what can't be done in a replica of a distribution strategy, such as making variables."""
    strategy = optimizer._distribution_strategy
    if tf.distribute.in_cross_replica_context():
        action(strategy, *arguments)
    else:
        tf.__internal__.distribute.interim.maybe_merge_call(action, strategy, *arguments)


class _Untracked:
    """Hides what it holds from Keras, which would save the hook with the optimizer."""

    def __init__(self, hook: Hook) -> None:
        self.hook = hook


def innermost(optimizer: keras.optimizers.Optimizer) -> Any:
    """The optimizer that updates the weights, inside of those that scale its loss."""
    while hasattr(optimizer, "inner_optimizer"):
        optimizer = optimizer.inner_optimizer
    return optimizer


def hook_of(optimizer: keras.optimizers.Optimizer) -> Hook | None:
    """The hook on an optimizer, None where there is none."""
    mark = getattr(innermost(optimizer), _MARK, None)
    return None if mark is None else mark.hook
