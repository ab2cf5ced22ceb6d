"""Prunes by a schedule, in any loop."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tb_pastnet.core.arguments import answered
from tb_pastnet.core.checks import is_whole
from tb_pastnet.core.decay import OneShot, PolynomialDecay
from tb_pastnet.core.pruning_rules import SCOPES
from tb_pastnet.errors import InvalidArgument


@answered
class ScheduledPruning:
    """Prunes the smallest weights step by step, in your own loop.

    It prunes after steps whose number is a multiple of `every`, and after the last step of the
    schedule. A training that resumes after the end is pruned at its first step.

    Args:
        masks: of the model.
        schedule: `pastnet.PolynomialDecay` or `pastnet.OneShot`.
        every: the number of steps between prunings.
        scope: "global" or "layer", as in `Masks.prune_smallest`.
        structured: whether whole channels are pruned, as in `Masks.prune_smallest`.
        variables: which variables, as in `Masks.prune_smallest`.

    Raises:
        InvalidArgument: an argument is invalid.

    Example:
        >>> class Masks:
        ...     def prune_smallest(self, sparsity, **how):
        ...         print(f"{sparsity:.2f}", how)
        >>> pruning = ScheduledPruning(Masks(), PolynomialDecay(0, 0.8, 0, 4, power=1), every=2)
        >>> for step in range(1, 5):
        ...     pruning.step(step)
        0.40 {'scope': 'global', 'structured': False, 'variables': None}
        0.80 {'scope': 'global', 'structured': False, 'variables': None}
    """

    def __init__(
        self,
        masks: Any,
        schedule: PolynomialDecay | OneShot,
        every: int = 100,
        scope: str = "global",
        structured: bool = False,
        variables: Iterable[Any] | None = None,
    ) -> None:
        _check(masks, schedule, every, scope, structured)
        # A generator would be empty the second time.
        chosen = variables if variables is None or isinstance(variables, str) else list(variables)
        self.masks, self._schedule, self._every = masks, schedule, int(every)
        self._how: dict[str, Any] = {"scope": scope, "structured": structured, "variables": chosen}
        self._sparsity = 0.0
        self._last: int | None = None

    def step(self, step: int) -> None:
        """Prunes if that is due after a step.

        Args:
            step: how many the training has made.

        Raises:
            InvalidArgument: as `Masks.prune_smallest` does.
        """
        self.advance(step - 1 if self._last is None else self._last, step)

    def advance(self, start: int, step: int) -> None:
        """Prunes if that is due after any step from one on, exclusive, up to another."""
        self._last = step
        sparsity = self._schedule(step)
        due = step // self._every > start // self._every or step >= self._schedule.end_step
        if due and sparsity is not None and sparsity > self._sparsity:
            self.masks.prune_smallest(sparsity, **self._how)
            self._sparsity = sparsity

    def restart(self) -> None:
        """From now on it prunes other weights, or older ones: their masks may lack pruned ones."""
        self._sparsity, self._last = 0.0, None


def _check(masks: object, schedule: object, every: Any, scope: object, structured: object) -> None:
    for fits, expected, got in (
        (
            callable(getattr(masks, "prune_smallest", None)),
            "masks=pastnet.Masks(model) or pastnet.torch.Masks(model)",
            masks,
        ),
        (
            isinstance(schedule, PolynomialDecay | OneShot),
            "schedule=pastnet.PolynomialDecay(…) or pastnet.OneShot(…)",
            schedule,
        ),
        (is_whole(every) and every >= 1, "every= as a whole number from 1 on", every),
        (scope in SCOPES, "scope='global' or 'layer'", scope),
        (isinstance(structured, bool), "structured=True or False", structured),
    ):
        if not fits:
            raise InvalidArgument(
                f"Could not prune by a schedule: expected {expected}, got {got!r:.60}. Write it so."
            )
