"""Makes some steps of a user's training, says what they do, and takes them back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import torch

from tb_pastnet.core.arguments import answered
from tb_pastnet.core.standing import UNKNOWN
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.device_array import has_memory
from tb_pastnet.record.preflight import Preflight, check_steps, random_state_kept
from tb_pastnet.torch.module_audit import is_frozen
from tb_pastnet.torch.module_tensors import local_of, reshard
from tb_pastnet.torch.module_weights import TorchWeight, values_in, weights_of
from tb_pastnet.torch.optimizer_steps import optimizers_in
from tb_pastnet.torch.saved_state import SavedState, parts_of, same_bits
from tb_pastnet.torch.watched_updates import WatchedUpdates

_DECAY_MARGIN = 0.02
"""The relative difference from weight decay that counts as its rounding."""


@answered
def preflight(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer],
    step: Callable[[], object],
    *,
    steps: int = 2,
    scaler: Any = None,
) -> Preflight:
    """Makes some steps of a training, and puts everything back: which weights train, and why not.

    Parameters, buffers, gradients, `requires_grad`, the mode of each module, the state of the
    optimizers and of the scaler, and the random state of Python, NumPy and torch are what they were
    before, bit for bit, even if a step raises. The copy takes the memory of weights, buffers and
    optimizer slots, and of gradients if there are any.

    Other things that a step changes are yours: data iterators move on, schedulers and loggers
    count.

    Args:
        model: a torch.nn.Module.
        optimizer: the optimizer, or a list of several.
        step: a function without arguments that makes one update: forward, backward, optimizer.
        steps: how many calls to make. Some weights get their first gradient in the second, such as
            those before a layer that begins at zero. If gradients are accumulated over calls, so
            many.
        scaler: the GradScaler, if there is one.

    Returns:
        The facts; print them, or look at `ok`, `still` and `leaks`.

    Raises:
        InvalidArgument: `model`, `step`, `steps` or `scaler` is unusable, or weights can't be read,
            before the steps or after them.

    Example:
        >>> model = torch.nn.ModuleDict({"a": torch.nn.Linear(2, 2), "b": torch.nn.Linear(2, 2)})
        >>> optimizer = torch.optim.AdamW(model.parameters())
        >>> def step():
        ...     optimizer.zero_grad()
        ...     model["b"](model["a"](torch.ones(4, 2)).detach()).sum().backward()
        ...     optimizer.step()
        >>> preflight(model, optimizer, step).still
        {'a/weight': 'no_gradient', 'a/bias': 'no_gradient'}
    """
    check_steps(step, steps)
    _check_module(model)
    _check_scaler(scaler)
    look = _SavedTraining(model, optimizers_in(optimizer), scaler)
    with random_state_kept():
        try:
            for _ in range(steps):
                step()
            return look.facts(steps)
        finally:
            look.end()


class _SavedTraining:
    """The state before the first step, and what becomes of it."""

    def __init__(
        self, model: torch.nn.Module, optimizers: Sequence[torch.optim.Optimizer], scaler: Any
    ) -> None:
        weights = [weight for weight in weights_of(model) if not weight.entry.computed]
        self._saved = SavedState(model, [*optimizers, *([] if scaler is None else [scaler])])
        self._model, self._scaler = model, scaler
        self._scale = _scale_of(scaler)
        self._foreign = [*_foreign({id(each) for each in model.parameters()}, optimizers)]
        self._weights = {
            weight.name: weight
            for weight in weights
            if not weight.statistic
            if weight.entry.stored.layout is torch.strided and weight.entry.stored.numel()
        }
        # By an alias: a step may replace a parameter, or its data.
        self._former = {weight.name: weight.entry.stored.detach() for weight in weights}
        own = self._weights.items()
        self._trained = [name for name, weight in own if weight.trainable()]
        self._statistics = [
            weight for weight in weights if weight.statistic and is_frozen(weight.entry.owner)
        ]
        self._watched = WatchedUpdates(list(self._weights.values()), optimizers, self._values)

    def facts(self, steps: int) -> Preflight:
        """Compares what the steps left with the state before."""
        reshard(self._model)
        names = list(self._weights)
        changed = {name for name in names if self._changed(self._weights[name])}
        trained = set(self._trained)
        frozen = [name for name in names if name not in trained]
        still = [name for name in self._trained if name not in changed]
        moved = [name for name in self._trained if name in changed]
        causes = self._watched.why_still(still, moved)
        return Preflight(
            steps,
            len(names),
            sum(self._former[name].numel() for name in names),
            {
                name: self._skipped(name, cause)
                for name, cause in causes.items()
                if cause != "weight_decay" or name not in changed or self._decays(name)
            },
            {name: self._watched.why_moved(name) for name in frozen if name in changed},
            frozen,
            self._watched.steps.left_out([self._weights[name] for name in self._trained]),
            self._foreign,
            [weight.name for weight in self._statistics if self._changed(weight)],
        )

    def end(self) -> None:
        """Puts the state back."""
        self._watched.close()
        reshard(self._model)
        self._saved.restore()

    def _values(self, name: str) -> Any:
        return values_in(self._saved.former(local_of(self._former[name])))

    def _changed(self, weight: TorchWeight) -> bool:
        current, former = weight.entry.stored, self._former[weight.name]
        if (current.dtype, current.shape, current.device) != (
            former.dtype,
            former.shape,
            former.device,
        ):
            return True
        if not has_memory(local_of(current)):
            raise weight.entry.freed()
        pairs = zip(parts_of(current), parts_of(former), strict=True)
        return not all(same_bits(part, self._saved.former(alias)) for part, alias in pairs)

    def _skipped(self, name: str, cause: str) -> str:
        """A cause, or that the scaler skipped each step, if it wasn't known."""
        fell = _scale_of(self._scaler) < self._scale
        unknown = cause == UNKNOWN and not self._watched.updates(name)
        return "skipped" if unknown and fell else cause

    def _decays(self, name: str) -> bool:
        """Whether a weight shrank by the decay of its updates, element by element."""
        bounds, updates = self._watched.decay(name), self._watched.updates(name)
        if bounds is None or not updates:
            return False
        current, former = local_of(self._weights[name].entry.stored), local_of(self._former[name])
        copy = self._saved.former(former).double()
        by, size = (copy - current.detach().double()) * copy.sign(), copy.abs()
        rounding = 2 * updates * torch.finfo(former.dtype).eps * size
        least, most = (1 - (1 - bound) ** updates for bound in bounds)
        enough = by >= (1 - _DECAY_MARGIN) * least * size - rounding
        return bool((enough & (by <= (1 + _DECAY_MARGIN) * most * size + rounding)).all())


def _foreign(own: Collection[int], optimizers: Sequence[torch.optim.Optimizer]) -> Iterator[str]:
    """Parameters of the optimizers that aren't among these, by id."""
    for optimizer in optimizers:
        for number, group in enumerate(optimizer.param_groups):
            names = group.get("param_names", range(len(group["params"])))
            for name, parameter in zip(names, group["params"], strict=True):
                if id(parameter) not in own:
                    where = f"{type(optimizer).__name__} group {number}, parameter {name}"
                    yield f"{where} {tuple(parameter.shape)}"


def _check_module(model: Any) -> None:
    if not isinstance(model, torch.nn.Module):
        raise InvalidArgument(
            f"Could not make a preflight: expected model= a torch.nn.Module, got "
            f"{type(model).__name__}. Write pastnet.torch.preflight(model, optimizer, step)."
        )


def _check_scaler(scaler: Any) -> None:
    if scaler is not None and not (hasattr(scaler, "get_scale") and hasattr(scaler, "__dict__")):
        raise InvalidArgument(
            f"Could not make a preflight: expected scaler= a GradScaler, got {scaler!r:.60}. Leave "
            f"it out if there is none."
        )


def _scale_of(scaler: Any) -> float:
    """The factor of a GradScaler, which it makes smaller when it skips a step."""
    return 1.0 if scaler is None else float(scaler.get_scale())
