"""Keeps masks while Hugging Face's `transformers.Trainer` trains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback

from tb_pastnet.core.arguments import answered
from tb_pastnet.record.failures import LOGGER
from tb_pastnet.torch.masks.trainer_masks import TrainerMasks

FILE = "pastnet_masks.pt"
"""The name of the file in a checkpoint's folder: safetensors have no room for masks."""


@answered
class HuggingFaceMasksCallback(TrainerMasks, TrainerCallback):
    """Saves masks with the checkpoints of `transformers.Trainer`, and prunes by schedule.

    Masks hold without it, too. A training that resumes from `output_dir`, or from
    `resume_from_checkpoint` of its arguments, gets the masks of its checkpoint; what was restored
    is logged, and in `masks.resumed`.

    Args:
        masks: `pastnet.torch.Masks` of the model, or of a module in it.
        schedule: prunes by it, as `ScheduledPruning` does in your own loop. None: it doesn't.
        every: the number of `global_step` between prunings.
        scope: "global" or "layer", as in `Masks.prune_smallest`.
        structured: whether whole channels are pruned, as in `Masks.prune_smallest`.
        variables: which variables, as in `Masks.prune_smallest`.

    Raises:
        InvalidArgument: an argument is invalid; masks of another model when training begins.

    Example:
        >>> from torch.nn import Linear
        >>> from tb_pastnet.torch import Masks
        >>> callback = HuggingFaceMasksCallback(Masks(Linear(2, 2)))
        >>> callback.masks.sparsity()  # pass it as transformers.Trainer(callbacks=[callback])
        0.0
    """

    def on_train_begin(
        self, args: Any, state: Any, control: Any, model: Any = None, **_: object
    ) -> None:
        """Restores masks if training resumes; the weights are loaded."""
        self._begin(model)
        if state.global_step:
            given = args.resume_from_checkpoint
            folders = [Path(given)] if isinstance(given, str) else []
            folders.append(_checkpoint(args, state))
            file = next((each / FILE for each in folders if (each / FILE).exists()), None)
            if file is None:
                LOGGER.warning(
                    "Could not restore masks: expected %s in %s, got none. Those that were set "
                    "stay in force.",
                    FILE,
                    " or ".join(map(str, folders)),
                )
            else:
                self._restore(torch.load(file, weights_only=True))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: object) -> None:
        """Prunes if it is due."""
        self._advance(state.global_step)

    def on_save(self, args: Any, state: Any, control: Any, **_: object) -> None:
        """Writes masks into the checkpoint's folder."""
        saved = self.masks.state_dict()
        if state.is_world_process_zero:
            torch.save(saved, _checkpoint(args, state) / FILE)


def _checkpoint(args: Any, state: Any) -> Path:
    return Path(args.output_dir) / f"checkpoint-{state.global_step}"
