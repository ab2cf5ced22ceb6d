"""Takes the masks of torch's own pruning off a module."""

from __future__ import annotations

import numpy as np
from torch import nn
from torch.nn.utils import parametrize, prune

from tb_pastnet.core.mask_input import Mask
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.record.device_array import tensor_values
from tb_pastnet.torch.module_tensors import is_mask


def taken_from_torch(model: nn.Module) -> dict[tuple[int, str], Mask]:
    """Removes the pruning of each weight, whose zeros stay; what was kept, by module id and key."""
    kept = {}
    for module in list(model.modules()):
        for key in _pruned(module):
            kept[id(module), key] = np.array(tensor_values(module._buffers[f"{key}_mask"])) != 0
            prune.remove(module, key)
        for key in _masked(module):
            (fake,) = module.parametrizations[key]
            kept[id(module), key] = np.array(tensor_values(fake.mask)) != 0
            parametrize.remove_parametrizations(module, key, leave_parametrized=True)
    return kept


def _pruned(module: nn.Module) -> list[str]:
    own = [key.removesuffix("_orig") for key in module._parameters if key.endswith("_orig")]
    return [key for key in own if f"{key}_mask" in module._buffers]


def _masked(module: nn.Module) -> list[str]:
    keys = []
    for key, made in (module._modules.get("parametrizations") or nn.ModuleDict()).items():
        if any(map(is_mask, made)):
            if len(made) > 1:
                raise InvalidArgument(
                    f"Could not take over the mask of {key!r} in a {type(module).__name__}: "
                    f"expected no other parametrization, got {len(made)}. Remove the others first."
                )
            keys.append(key)
    return keys
