"""Optimizers of Keras: what they keep of a variable, and the hook that holds masks.

The hook stands on the innermost optimizer's `apply`: around each update it takes what is held, and
puts it back, so that loss scaling, gradient accumulation, clipping, weight decay, constraints and
moving averages all lie inside. Held gradients are zeroed before they are clipped. That is exact for
every optimizer of Keras, where masking gradients alone lets momentum, weight decay and averages
through.

Keras has no public way from a variable to its slots. They are the optimizer's lists with one entry
for each variable, found by their length and shapes, so that a new optimizer's are found as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import keras
import tensorflow as tf

from tb_pastnet.keras.masks.variable_masks import VariableMasks
from tb_pastnet.keras.model.optimizers import innermost
from tb_pastnet.keras.model.walk import tf_variable
from tb_pastnet.record.masks.mask_table import MaskTable

_MARK = "_pastnet_hook"
_AVERAGES = "_model_variables_moving_average"
_WEIGHTS = "_trainable_variables"


class Hook:
    """Holds what masks hold, on one innermost optimizer; counts the updates that went through it.

    Its `generation` is that of the masks when the last step was traced, of all tables together:
    parts of a network may have masks of their own.
    """

    def __init__(self, optimizer: keras.optimizers.Optimizer, table: MaskTable) -> None:
        self.optimizer = optimizer
        self.tables = [table]
        with tf.init_scope(), optimizer._distribution_strategy.scope():
            self.applied = self._counter("applied")
            self.generation = self._counter("generation")
        original = optimizer.apply
        # Keras would save the hook with the optimizer if it saw it.
        setattr(optimizer, _MARK, SimpleNamespace(hook=self))
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
            generation = sum(table.generation for table in self.tables)
            self.generation.assign(generation, read_value=False)

        apart: Callable[..., None] = tf.autograph.experimental.do_not_convert(apply)
        return apart

    def _trained(self) -> list[Any]:
        return list(getattr(self.optimizer, _WEIGHTS, ()))

    def _masks(self, variables: Sequence[Any]) -> list[VariableMasks | None]:
        return [self._storage_of(tf_variable(variable)) for variable in variables]

    def _storage_of(self, variable: Any) -> VariableMasks | None:
        found = (table.storage_of(variable) for table in self.tables)
        return next((masks for masks in found if masks is not None), None)

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


def hook_of(optimizer: keras.optimizers.Optimizer) -> Hook | None:
    """The hook on an optimizer, None where there is none."""
    mark = getattr(innermost(optimizer), _MARK, None)
    return None if mark is None else mark.hook


def slots_of(optimizer: keras.optimizers.Optimizer, variable: tf.Variable) -> dict[str, Any]:
    """A variable's slots of its shape, but its moving average, by their list's name ("_momentums").

    {} where the optimizer isn't built or doesn't train the variable.
    """
    return {
        name: slot
        for name, weight, slot in _entries(optimizer)
        if weight is variable and name != _AVERAGES and slot.shape == variable.shape
    }


def averages_of(optimizer: keras.optimizers.Optimizer) -> dict[int, Any]:
    """The moving averages of weights by the id() of their tf.Variable, {} without `use_ema`."""
    return {id(weight): slot for name, weight, slot in _entries(optimizer) if name == _AVERAGES}


def _entries(optimizer: keras.optimizers.Optimizer) -> Iterator[tuple[str, Any, Any]]:
    # A MultiOptimizer leaves its variables to others.
    for member in (optimizer, *getattr(optimizer, "optimizers", ())):
        weights = [tf_variable(weight) for weight in getattr(member, _WEIGHTS, ())]
        for name, entries in vars(member).items():
            if name == _WEIGHTS or not isinstance(entries, list) or len(entries) != len(weights):
                continue
            for weight, entry in zip(weights, entries, strict=True):
                slot = tf_variable(entry)
                if slot is not None:
                    yield name, weight, slot
