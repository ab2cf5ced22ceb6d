"""Recording and masks for PyTorch: in your own training loop, Lightning or Hugging Face.

The names are loaded when they are first used.

Example:
    >>> import tb_pastnet as pastnet
    >>> "Recorder" in dir(pastnet.torch)
    True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tb_pastnet import lazy

if TYPE_CHECKING:
    from tb_pastnet.record.masks.scheduled_pruning import ScheduledPruning as ScheduledPruning
    from tb_pastnet.torch import summary as summary
    from tb_pastnet.torch.hugging_face_callback import HuggingFaceCallback as HuggingFaceCallback
    from tb_pastnet.torch.hugging_face_masks_callback import (
        HuggingFaceMasksCallback as HuggingFaceMasksCallback,
    )
    from tb_pastnet.torch.lightning_callback import LightningCallback as LightningCallback
    from tb_pastnet.torch.lightning_masks_callback import (
        LightningMasksCallback as LightningMasksCallback,
    )
    from tb_pastnet.torch.masks.torch_masks import Masks as Masks
    from tb_pastnet.torch.preflight_steps import preflight as preflight
    from tb_pastnet.torch.recorder import Recorder as Recorder
    from tb_pastnet.torch.watching import watch as watch

_HOMES = {
    "HuggingFaceCallback": "tb_pastnet.torch.hugging_face_callback",
    "HuggingFaceMasksCallback": "tb_pastnet.torch.hugging_face_masks_callback",
    "LightningCallback": "tb_pastnet.torch.lightning_callback",
    "LightningMasksCallback": "tb_pastnet.torch.lightning_masks_callback",
    "Masks": "tb_pastnet.torch.masks.torch_masks",
    "Recorder": "tb_pastnet.torch.recorder",
    "ScheduledPruning": "tb_pastnet.record.masks.scheduled_pruning",
    "preflight": "tb_pastnet.torch.preflight_steps",
    "summary": "tb_pastnet.torch.summary",
    "watch": "tb_pastnet.torch.watching",
}

# What a star import gives: it would fail at the first name that can't be loaded.
__all__ = ["Masks", "Recorder", "ScheduledPruning", "preflight", "summary", "watch"]
if lazy.installed("transformers"):
    __all__ += ["HuggingFaceCallback", "HuggingFaceMasksCallback"]
if lazy.installed("lightning") or lazy.installed("pytorch_lightning"):
    __all__ += ["LightningCallback", "LightningMasksCallback"]

__getattr__ = lazy.names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(_HOMES)
