"""The common part of callbacks that keep masks while a trainer trains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tb_pastnet.core.decay import OneShot, PolynomialDecay
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.masks.commands import wrong_masks
from tb_pastnet.record.masks.scheduled_pruning import ScheduledPruning
from tb_pastnet.torch.masks.given import check_concerns
from tb_pastnet.torch.masks.torch_masks import Masks
from tb_pastnet.torch.module_weights import weights_of


class TrainerMasks:
    """Saves masks with a trainer's checkpoints, restores them, and prunes by a schedule."""

    def __init__(
        self,
        masks: Masks,
        schedule: PolynomialDecay | OneShot | None = None,
        *,
        every: int = 100,
        scope: str = "global",
        structured: bool = False,
        variables: Iterable[Any] | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(masks, Masks):
            raise wrong_masks("keep masks", f"a {type(masks).__name__}")
        self.masks = masks
        self._pruning: ScheduledPruning | None = None
        if schedule is not None:
            how = every, scope, structured, variables
            self._pruning = ScheduledPruning(masks, schedule, *how)
        elif (every, scope, structured, variables) != (100, "global", False, None):
            raise InvalidArgument(
                "Could not keep masks: expected schedule= with the other options, got None. Pass "
                "pastnet.PolynomialDecay(…), or leave them out."
            )

    def _begin(self, model: Any) -> None:
        """Training begins: the trainer may have sharded the module."""
        check_concerns(self.masks, weights_of(model), "keep masks while training")
        self.masks.state.find_tensors()
        if self._pruning is not None:
            self._pruning.restart()

    def _advance(self, step: int) -> None:
        if self._pruning is not None:
            self._pruning.step(step)

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.masks.load_state_dict(state)
