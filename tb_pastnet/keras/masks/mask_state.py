"""The masks of a model: saved with it, but not among its variables.

A subclass of Keras's Loss is saved in .keras and .weights.h5 files, and a PythonState in TensorFlow
checkpoints. It is neither among a model's variables nor a problem for a plain Keras that loads the
file.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tb_pastnet.core.mask_input import Mask
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.layers.refusals import refuse_lora
from tb_pastnet.keras.masks.traces import retrace
from tb_pastnet.keras.masks.variable_masks import MASKS, VariableMasks
from tb_pastnet.keras.model.tf_weights import TFWeight, network
from tb_pastnet.keras.model.weights import shown
from tb_pastnet.keras.strategies import check_agreed
from tb_pastnet.record.masks import packed
from tb_pastnet.record.masks.mask_table import MaskTable
from tb_pastnet.record.masks.packed import Resumed, SavedMasks, check_sums

STORED = "masks"


class MaskState(MaskTable, keras.losses.Loss, tf.train.experimental.PythonState):
    """The masks of a model's variables: a view of its current variables' masks.

    Attributes:
        keeper: the object that enforces the masks, None before there are any.
    """

    def __init__(self, model: Any) -> None:
        weights = network(model)
        MaskTable.__init__(self, weights.everything, MASKS, self._made)
        keras.losses.Loss.__init__(self, name="pastnet_masks")
        # Hidden from trackers: checksums of a file, what they were compared with, the keeper.
        self._loaded = SimpleNamespace(sums=None, resumed=None, keeper=None)
        self._seen = SimpleNamespace(model=model, variables=_variables(model))
        self.origin = weights.origin()

    def look(self) -> None:
        """See `MaskTable`: layers may have been added or removed."""
        seen, variables = self._seen, _variables(self._seen.model)
        if variables != seen.variables:
            seen.variables = variables
            weights = network(seen.model).everything
            self._contents.weights = {weight.name: weight for weight in weights}
            MASKS.version += 1

    def _made(self, weight: TFWeight) -> VariableMasks:
        enforced = self.keeper is None or self.keeper.enforces
        masks = VariableMasks(weight.variable, enforced=enforced)
        for layer in weight.found.around[-1:]:
            refuse_lora(layer, weight.name, masks)
        return masks

    @property
    def keeper(self) -> Any:
        """See the class."""
        return self._loaded.keeper

    @keeper.setter
    def keeper(self, keeper: Any) -> None:
        self._loaded.keeper = keeper

    def write(self, name: str, kept: Mask, trainable: Mask) -> None:
        """Sets the masks of a weight, the same in all workers of a strategy, or raises."""
        variable = self.weights[name].variable
        check_agreed(variable, f"the masks of {name!r}", kept, trainable)
        super().write(name, kept, trainable)

    def _settle(self) -> None:
        """Compares held values with those of a loaded file, and holds them as they are."""
        saved, self._loaded.sums = self._loaded.sums, None
        if saved is None:
            return
        self.look()
        for masks in self.masked.values():
            masks.refer_anew()
        still = self.masked.keys() & saved.keys()
        sums = {name: (own, self._saved(name).sums) for name, own in saved.items() if name in still}
        self._loaded.resumed = Resumed.of(sums)

    def _saved(self, name: str) -> SavedMasks:
        masks, axis = self.masked[name], self.weights[name].axis
        kept, through = masks.kept.numpy(), masks.through.numpy()
        return SavedMasks(kept, through, check_sums(masks.variable.numpy(), through, axis))

    @property
    def resumed(self) -> Resumed | None:
        """The result of loading masks and held values; None if none were loaded."""
        self.settle()
        resumed: Resumed | None = self._loaded.resumed
        return resumed

    def serialize(self) -> bytes:
        """Masks and checksums of held values, one bit per element and mask, before compression."""
        if not tf.executing_eagerly():
            # `tf.saved_model.save` calls this while it builds a graph, and never restores it.
            return b""
        self.look()
        return packed.save(self.origin, {name: self._saved(name) for name in self.masked})

    def deserialize(self, string_value: bytes) -> None:
        """Reads what `serialize` wrote, possibly before the weights are loaded."""
        if not string_value:
            return
        self.look()
        self.origin, loaded = packed.load(string_value, self._check_fits)
        for name in {*self.masked, *loaded}:
            masks = self.storage_for(name)
            free = np.ones(masks.variable.shape, bool)
            kept, through = loaded[name][:2] if name in loaded else (free, free)
            masks.kept.assign(kept)
            masks.through.assign(through)
            masks.let_be()
        self._loaded.sums = {name: saved.sums for name, saved in loaded.items()}
        # Not now: Keras may load the masks before the weights.
        MASKS.settle_by(self._settle)
        MASKS.version += 1
        retrace([masks.variable for masks in self.masked.values()])

    def _check_fits(self, name: str, shape: tuple[int, ...]) -> None:
        weight = self.weights.get(name)
        if weight is None or weight.shape != shape:
            got = "no such variable" if weight is None else f"shape {weight.shape}"
            raise InvalidArgument(
                f"Could not load the masks of {name!r}: expected a variable of shape {shape}, as "
                f"in the file, got {got} in the model. Load them into a model of the same "
                "structure."
            )

    def __deepcopy__(self, memo: object) -> None:
        raise InvalidArgument(
            f"Could not copy the masks of {shown(self._seen.model)}: expected a Keras model or "
            f"layer, got a {type(self._seen.model).__name__}. Copy its values into another one, "
            "and make Masks for that."
        )

    def save_own_variables(self, store: Any) -> None:
        """Writes the masks into a .keras or .weights.h5 file. Keras calls it."""
        store[STORED] = np.frombuffer(self.serialize(), np.uint8)

    def load_own_variables(self, store: Any) -> None:
        """Reads the masks; a file without any leaves them unchanged. Keras calls it."""
        if STORED in store.keys():  # noqa: SIM118 - Keras's store has no `in`
            # An index, because h5py's data sets are not quite arrays.
            self.deserialize(store[STORED][()].tobytes())


def _variables(model: Any) -> list[int]:
    """Identifies the current variables of a model; a mapping's never change."""
    return [] if isinstance(model, Mapping) else [id(each) for each in model.variables]
