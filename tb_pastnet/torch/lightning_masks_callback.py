"""Keeps masks while Lightning trains."""

from __future__ import annotations

from typing import Any

try:
    from lightning.pytorch import Callback
except ModuleNotFoundError:  # the package by its older name
    from pytorch_lightning import Callback

from tb_pastnet.core.arguments import answered
from tb_pastnet.torch.masks.trainer_masks import TrainerMasks


@answered
class LightningMasksCallback(TrainerMasks, Callback):
    """Saves masks in the checkpoints of Lightning's Trainer, restores them, and prunes by schedule.

    Masks hold without it, too. A training that resumes gets the masks of its checkpoint; what was
    restored is logged, and in `masks.resumed`.

    Args:
        masks: `pastnet.torch.Masks` of the LightningModule, or of a module in it.
        schedule: prunes by it, as `ScheduledPruning` does in your own loop. None: it doesn't.
        every: the number of `global_step` between prunings.
        scope: "global" or "layer", as in `Masks.prune_smallest`.
        structured: whether whole channels are pruned, as in `Masks.prune_smallest`.
        variables: which variables, as in `Masks.prune_smallest`.

    Raises:
        InvalidArgument: an argument is invalid; masks of another module when training begins.

    Example:
        >>> from torch.nn import Linear
        >>> from tb_pastnet.torch import Masks
        >>> callback = LightningMasksCallback(Masks(Linear(2, 2)))  # Trainer(callbacks=[callback])
    """

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Finds the tensors that are trained."""
        self._begin(pl_module)

    def on_train_batch_end(self, trainer: Any, *_: object) -> None:
        """Prunes if it is due."""
        self._advance(trainer.global_step)

    def state_dict(self) -> dict[str, Any]:
        """The masks, for a checkpoint."""
        return dict(self.masks.state_dict())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores masks; Lightning has loaded the weights before."""
        self._restore(state_dict)
