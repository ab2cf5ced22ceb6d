"""Keras optimizers: their slots of a variable, and the hook that enforces masks.

The hook is on `apply` of the base class of all optimizers, so every update of a variable uses its
masks. After each update it restores held weights; loss scaling, gradient accumulation, clipping,
weight decay, constraints and moving averages all happen inside. Held gradients are zeroed before
they are clipped. That is exact for every Keras optimizer, while masking only gradients lets
momentum, weight decay and averages through.

Keras has no public way from a variable to its slots. They are the optimizer's lists with one entry
for each variable, found by length and shapes: this works for new optimizers as well.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tb_pastnet.core.mask_input import Mask
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.masks.variable_masks import MASKS, VariableMasks
from tb_pastnet.keras.model.optimizers import innermost
from tb_pastnet.keras.model.tf_variable import tf_variable

UPDATING: weakref.WeakKeyDictionary[Any, None] = weakref.WeakKeyDictionary()
"""Optimizers that have updated variables, whether or not these have masks, in a fixed order."""

_MARK = "_pastnet_hook"
_AVERAGES = "_model_variables_moving_average"
_WEIGHTS = "_trainable_variables"


class Hook:
    """Counts the updates of one innermost optimizer that went through the hook.

    Its `generation` is that of all masks when the last of its steps was traced.
    """

    def __init__(self, optimizer: keras.optimizers.Optimizer) -> None:
        # Weak: otherwise a replaced optimizer would stay until garbage is collected.
        self._optimizer = weakref.ref(optimizer)
        with tf.init_scope(), optimizer._distribution_strategy.scope():
            self.applied = self._counter("applied")
            self.generation = self._counter("generation")
        # Keras would save the hook with the optimizer if it were tracked.
        setattr(optimizer, _MARK, SimpleNamespace(hook=self))

    @property
    def optimizer(self) -> Any:
        """The optimizer, which owns this hook."""
        return self._optimizer()

    @staticmethod
    def _counter(name: str) -> Any:
        first = tf.VariableAggregation.ONLY_FIRST_REPLICA
        return tf.Variable(0, dtype=tf.int64, trainable=False, name=name, aggregation=first)

    def count(self) -> None:
        """Counts an update."""
        self.applied.assign_add(1, read_value=False)
        self.generation.assign(MASKS.generation, read_value=False)


def holding(original: Callable[..., None]) -> Callable[..., None]:
    """The `apply` of all optimizers, which then restores held weights."""

    @functools.wraps(original)
    def apply(
        self: Any, grads: Sequence[Any], trainable_variables: Sequence[Any] | None = None
    ) -> None:
        UPDATING.setdefault(self)
        trained = list(getattr(self, _WEIGHTS, ()))
        variables = trained
        if trainable_variables is not None:
            variables = trainable_variables = list(trainable_variables)
        # An overwriting average writes all variables, including those without a gradient.
        moved = {id(m): m for m in map(_enforced, [*variables, *trained]) if m is not None}
        if not moved and hook_of(self) is None:
            original(self, grads, trainable_variables)
            return
        hook = install(self)
        grads = list(grads)
        through = {key: tf.convert_to_tensor(masks.through) for key, masks in moved.items()}
        # Not strict: Keras has its own error for too few gradients.
        for number, (gradient, variable) in enumerate(zip(grads, variables, strict=False)):
            masks = _enforced(variable)
            if masks is not None and gradient is not None:
                grads[number] = masks.mask_gradient(gradient, through[id(masks)])
        held = [(through[key], masks.held_now()) for key, masks in moved.items()]
        original(self, grads, trainable_variables)
        _restore(self, list(moved.values()), held)
        for masks in moved.values():
            masks.hooks.add(hook)
        hook.count()

    held_apply: Callable[..., None] = tf.autograph.experimental.do_not_convert(apply)
    return held_apply


def _enforced(variable: Any) -> VariableMasks | None:
    masks: VariableMasks | None = MASKS.of(tf_variable(variable))
    return masks if masks is not None and masks.enforced else None


def _restore(
    optimizer: Any, moved: Sequence[VariableMasks], held: Sequence[tuple[Any, Any]]
) -> None:
    averages = averages_of(optimizer)

    def put_back(strategy: Any, values: Sequence[Any]) -> None:
        for masks, value in zip(moved, values, strict=True):
            for variable in (masks.variable, averages.get(id(masks.variable))):
                if variable is not None:
                    strategy.extended.update(variable, masks.restore, args=value, group=False)

    if moved:
        merged(put_back, optimizer, held)


def install(optimizer: keras.optimizers.Optimizer) -> Hook:
    """The hook of an innermost optimizer, made if there is none."""
    if hook_of(optimizer) is None:

        def make(_strategy: Any) -> None:
            Hook(optimizer)

        merged(make, optimizer)
    hook: Hook = getattr(optimizer, _MARK).hook
    return hook


def merged(
    action: Callable[..., None], optimizer: keras.optimizers.Optimizer, *arguments: Any
) -> None:
    """Runs what can't run in a replica of a distribution strategy, such as making variables."""
    strategy = optimizer._distribution_strategy
    if tf.distribute.in_cross_replica_context():
        action(strategy, *arguments)
    else:
        tf.__internal__.distribute.interim.maybe_merge_call(action, strategy, *arguments)


def hook_of(optimizer: keras.optimizers.Optimizer) -> Hook | None:
    """The hook on an optimizer, None if there is none."""
    mark = getattr(innermost(optimizer), _MARK, None)
    return None if mark is None else mark.hook


def parts(optimizer: Any) -> list[Any]:
    """The optimizer, and those that a MultiOptimizer leaves the weights to."""
    return [optimizer, *getattr(optimizer, "optimizers", ())]


def updating(variables: Iterable[tf.Variable]) -> list[Any]:
    """The optimizers, of whatever model or loop, that have updated some of these variables."""
    ids = set(map(id, variables))
    return [
        each
        for each in list(UPDATING)
        if not ids.isdisjoint(id(tf_variable(own)) for own in getattr(each, _WEIGHTS, ()))
    ]


def slots_of(optimizer: keras.optimizers.Optimizer, variable: tf.Variable) -> dict[str, Any]:
    """A variable's slots of its shape, except its moving average, by list name ("_momentums").

    {} if the optimizer isn't built or doesn't train the variable.
    """
    return {
        name: slot
        for name, weight, slot in _entries(optimizer)
        if weight is variable and name != _AVERAGES and slot.shape == variable.shape
    }


def renew(optimizer: Any, variable: tf.Variable, where: Mask) -> None:
    """Sets a variable's slots to their initial values at some elements, where it is zero."""
    # Adagrad and Ftrl divide by it.
    start = getattr(optimizer, "initial_accumulator_value", 0.0)
    for name, slot in slots_of(optimizer, variable).items():
        fresh = np.array(start if name == "_accumulators" else 0.0, slot.dtype.as_numpy_dtype)
        slot.assign(np.where(where, fresh, slot.numpy()))


def unbuilt(optimizer: Any) -> Any:
    """Another optimizer with the same settings, except its learning rate.

    Raises:
        InvalidArgument: its class can't be made from its configuration.
    """
    own = vars(optimizer)
    rate = own["_learning_rate"]
    try:
        # A schedule of a user's class often has no configuration.
        own["_learning_rate"] = None
        with optimizer._distribution_strategy.scope():
            return type(optimizer).from_config(optimizer.get_config())
    except Exception as error:
        kind = type(optimizer).__name__
        raise InvalidArgument(
            f"Could not reset the slots of {kind}: expected a class with get_config, got {error}. "
            "Write one, or build the optimizer before you take a snapshot."
        ) from error
    finally:
        own["_learning_rate"] = rate


def reset(optimizer: Any, fresh: Any) -> None:
    """Sets its slots to those of a fresh optimizer, which is built here."""
    with optimizer._distribution_strategy.scope():
        fresh.build(optimizer._trainable_variables)
    for variable, value in zip(_without_clock(optimizer), _without_clock(fresh), strict=True):
        variable.assign(value)


def _without_clock(optimizer: Any) -> list[Any]:
    return [each for each in optimizer._variables if not is_clock(optimizer, each)]


def is_clock(optimizer: Any, variable: Any) -> bool:
    """Whether a variable of an optimizer is its steps or its learning rate."""
    clock = optimizer._iterations, optimizer._learning_rate
    return any(tf_variable(each) is tf_variable(variable) for each in clock)


def averages_of(optimizer: keras.optimizers.Optimizer) -> dict[int, Any]:
    """The moving averages of weights by the id() of their tf.Variable, {} without `use_ema`."""
    found = _entries(optimizer, [_AVERAGES])
    return {id(weight): average for _, weight, average in found}


def _entries(
    optimizer: keras.optimizers.Optimizer, names: Sequence[str] | None = None
) -> Iterator[tuple[str, Any, Any]]:
    for member in parts(optimizer):
        weights = getattr(member, _WEIGHTS, ())
        for name in vars(member) if names is None else names:
            entries = getattr(member, name, None)
            if name == _WEIGHTS or not isinstance(entries, list) or len(entries) != len(weights):
                continue
            for weight, entry in zip(weights, entries, strict=True):
                slot = tf_variable(entry)
                if slot is not None:
                    yield name, tf_variable(weight), slot
