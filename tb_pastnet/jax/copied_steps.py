"""Makes some steps of a user's training on copies, and says what they do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np

from tb_pastnet.core.arguments import answered
from tb_pastnet.core.standing import UNKNOWN
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.jax.leaf_weights import LeafWeight, network_of
from tb_pastnet.jax.state_causes import StateCauses
from tb_pastnet.jax.still_leaves import StillLeaves
from tb_pastnet.jax.tree import Tree, by_name, leaves
from tb_pastnet.record.audit.comparison import Comparison
from tb_pastnet.record.audit.held_array import HeldSince
from tb_pastnet.record.device_array import values_of
from tb_pastnet.record.preflight import Preflight, check_steps, random_state_kept
from tb_pastnet.record.source import HELD
from tb_pastnet.record.weight import Array, Mask

Step = Callable[[Any, Any], Any]


@answered
def preflight(
    params: Any, opt_state: Any, step: Step, *, steps: int = 2, trainable: Any = None
) -> Preflight:
    """Makes some steps of a training on copies: which leaves train, and why not.

    `params` and `opt_state` stay as they are, even if a step donates its arguments or changes them
    in place. The random state of Python and NumPy is put back, even if a step raises. The copies
    take the memory of params and optimizer state.

    Other things that a step changes are yours: data iterators move on, loggers count.

    Args:
        params: the pytree that is trained.
        opt_state: the optimizer state.
        step: makes one update: `step(params, opt_state)` returns the new params, the new state, and
            whatever else. It may instead change both in place, as with `nnx.Optimizer`.
        steps: how many calls to make. Some weights get their first gradient in the second, such as
            those before a layer that begins at zero. If gradients are accumulated over calls, as by
            `optax.MultiSteps`, so many.
        trainable: which leaves should train, as in a Recorder: a pytree of booleans, a prefix of
            one, or a function that makes it. None: those that the optimizer has slots for, if it
            has any.

    Returns:
        The facts; print them, or look at `ok`, `still` and `leaks`. Without `trainable`, a leaf
        without slots that doesn't move is frozen.

    Raises:
        InvalidArgument: an argument can't be used, or a step returns another tree.

    Example:
        >>> import jax.numpy as jnp
        >>> params = {"a": jnp.ones(2), "b": jnp.ones(2)}
        >>> def step(params, momentum):
        ...     grads = jax.grad(lambda tree: (tree["a"] ** 2).sum())(params)
        ...     momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
        ...     return jax.tree.map(lambda p, m: p - 0.1 * m, params, momentum), momentum
        >>> preflight(params, jax.tree.map(jnp.zeros_like, params), step).still
        {'b': 'zero_gradient'}
    """
    check_steps(step, steps)
    with random_state_kept():
        look = _SavedTrees(params, opt_state, by_name(params, trainable, "trainable"))
        trained, state = _copies(params), _copies(opt_state)
        for _ in range(steps):
            trained, state = _make_step(step, trained, state)
            look.see(trained, state)
        return look.facts(steps, trained, state)


class _SavedTrees:
    """The trees before the first step, and what becomes of them."""

    def __init__(self, params: Any, opt_state: Any, trainable: Mapping[str, Any]) -> None:
        self._before = {leaf.name: leaf.value for leaf in leaves(params)}
        self._tree = Tree(params)
        with self._tree.seen(params, opt_state):
            weights = network_of(params, self._tree).weights
            self._statistics = [weight for weight in weights if weight.statistic]
            self._weights = [weight for weight in weights if not weight.statistic]
            self._still = StillLeaves(self._tree, self._weights)
            self._causes = StateCauses(self._tree)
            self._held = self._declared(trainable)
            self._causes.begin(list(self._held.values()))
        self._declares = bool(trainable)
        self._found: Mapping[int, str] = {}
        self.see(params, opt_state)

    def see(self, params: Any, opt_state: Any) -> None:
        """Looks at the slots after a step."""
        with self._tree.seen(params, opt_state):
            self._found = self._still.find(range(len(self._weights)), [], _rate_in(opt_state))

    def facts(self, steps: int, params: Any, opt_state: Any) -> Preflight:
        """Compares what the steps left with the trees before."""
        with self._tree.seen(params, opt_state):
            causes = {
                weight.name: self._why_still(number, weight)
                for number, weight in enumerate(self._weights)
            }
            leaks = {
                name: self._causes.cause(held, np.arange(held.axis.channels))
                for name, held in self._held.items()
                if held.compared().differ().any()
            }
            frozen = [
                name
                for name, cause in causes.items()
                if cause == HELD or (name in self._held and self._held[name].flags().all())
            ]
            layers = {weight.layer for weight in self._weights if weight.name not in frozen}
            statistics = [
                weight.name
                for weight in self._statistics
                if weight.layer not in layers and self._compared(weight).differ().any()
            ]
        still = {name: cause for name, cause in causes.items() if cause and name not in frozen}
        values = sum(int(np.prod(weight.shape)) for weight in self._weights)
        return Preflight(steps, len(causes), values, still, leaks, frozen, statistics=statistics)

    def _declared(self, trainable: Mapping[str, Any]) -> dict[str, _HeldElements]:
        """The leaves that should be frozen, at least in part."""
        held = {}
        for weight in self._weights:
            through = np.asarray(trainable.get(weight.name, True)) != 0
            if not through.all():
                flags = np.broadcast_to(~through, weight.shape)
                held[weight.name] = _HeldElements(weight, partial(self._former, weight.name), flags)
        return held

    def _former(self, name: str) -> Array:
        return values_of(self._before[name])

    def _compared(self, weight: LeafWeight) -> Comparison:
        return Comparison(weight.read(), self._former(weight.name), None)

    def _why_still(self, number: int, weight: LeafWeight) -> str:
        """Why a leaf doesn't train; "" if it does, or is frozen by declaration."""
        held, compared = self._held.get(weight.name), self._compared(weight)
        differ = compared.differ()
        cause = self._found.get(number, "")
        if held is not None:
            differ = differ[~held.flags()]
            if not differ.size:
                return ""
        if not differ.any():
            if self._accumulates(weight.name):
                return UNKNOWN
            return "no_optimizer" if cause == HELD and self._declares else cause
        return "weight_decay" if cause == "zero_gradient" and _shrunk(compared) else ""

    def _accumulates(self, name: str) -> bool:
        """Whether gradients of a leaf wait for a later step."""
        own = (leaf for leaf in self._tree.slots().get(name, ()) if "acc_grads" in leaf.name)
        return any(bool(jax.numpy.any(leaf.value)) for leaf in own)


class _HeldElements(HeldSince):
    """A leaf that is held in part, or whole."""

    def __init__(self, weight: LeafWeight, values: Callable[[], Array], flags: Mask) -> None:
        super().__init__(weight, values)
        self._held = flags

    def compared(self) -> Comparison:
        """See `Held`."""
        return super().compared()._replace(held=self._held)


def _shrunk(compared: Comparison) -> bool:
    """Whether all elements shrank by one share, as by weight decay."""
    was, current = (np.asarray(each, np.float64) for each in (compared.expected, compared.value))
    if not was.any():
        return False
    factor = float((current * was).sum() / (was * was).sum())
    spacing = np.abs(np.spacing(np.abs(compared.expected))).astype(np.float64)
    return 0 < factor < 1 and bool((np.abs(current - factor * was) <= 4 * spacing).all())


def _rate_in(opt_state: Any) -> float:
    """The learning rate, if the state has one, as with `optax.inject_hyperparams`."""
    rates = {
        float(leaf.value)
        for leaf in leaves(opt_state)
        if leaf.name.rpartition("/")[2] == "learning_rate" and not np.ndim(leaf.value)
    }
    return rates.pop() if len(rates) == 1 else float("nan")


def _copies(tree: Any) -> Any:
    """A tree whose arrays have their own memory: a step may donate them."""

    def copy(leaf: Any) -> Any:
        return leaf.copy() if hasattr(leaf, "copy") and hasattr(leaf, "dtype") else leaf

    return jax.tree_util.tree_map(copy, tree)


def _make_step(step: Step, params: Any, state: Any) -> tuple[Any, Any]:
    """The trees after a step: those that it returns, or those that it was given and changed."""
    places = [id(leaf) for leaf in jax.tree_util.tree_leaves(params)]
    names = _names(params)
    answer = step(params, state)
    if isinstance(answer, tuple | list) and len(answer) > 1 and _names(answer[0]) == names:
        return answer[0], answer[1]
    if places != [id(leaf) for leaf in jax.tree_util.tree_leaves(params)]:
        return params, state
    got = f"a {type(answer).__name__}"
    if isinstance(answer, tuple | list) and answer:
        got += f" of {len(answer)} that begins with a {type(answer[0]).__name__}"
    raise InvalidArgument(
        f"Could not make a preflight: expected step= to return the new params and the new state "
        f"first, got {got}. Write return params, opt_state."
    )


def _names(tree: Any) -> list[str]:
    return [leaf.name for leaf in leaves(tree)]
