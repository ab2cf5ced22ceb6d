"""The masks of a model: in force in all updates, and saved with it, but not among its variables.

A subclass of Keras's Loss is saved in .keras and .weights.h5 files, and a PythonState in TensorFlow
checkpoints. It is neither among a model's variables nor a problem for a plain Keras that loads the
file.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tb_pastnet.core.mask_input import Mask
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.keras.layers.refusals import refuse_lora
from tb_pastnet.keras.masks.optimizers import averages_of, install, parts, renew, updating
from tb_pastnet.keras.masks.variable_masks import MASKS, VariableMasks
from tb_pastnet.keras.model.optimizers import innermost, optimizers_of
from tb_pastnet.keras.model.tf_variable import tf_variable
from tb_pastnet.keras.model.tf_weights import TFWeight, network
from tb_pastnet.keras.model.weights import shown
from tb_pastnet.keras.strategies import check_agreed
from tb_pastnet.record.masks import packed
from tb_pastnet.record.masks.array_file import untrusted
from tb_pastnet.record.masks.mask_table import MaskTable
from tb_pastnet.record.masks.packed import MEND, Bounds, Resumed, SavedMasks, check_sums

STORED = "masks"

TRACED: weakref.WeakSet[Any] = weakref.WeakSet()
"""Models that have compiled a step, and may have to do so again."""


class MaskState(MaskTable, keras.losses.Loss, tf.train.experimental.PythonState):
    """The masks of a model's variables: a view of its current variables' masks.

    It enforces changes of masks once `enforce` is called; before, masks are only declared.
    """

    def __init__(self, model: Any) -> None:
        weights = network(model)
        MaskTable.__init__(self, weights.everything, MASKS, self._made)
        keras.losses.Loss.__init__(self, name="pastnet_masks")
        # Hidden from trackers of Keras and TensorFlow.
        self._hidden = SimpleNamespace(
            model=model,
            variables=_variables(model),
            # Checksums of a file, and what they were compared with.
            sums=None,
            resumed=None,
            # None before a user has made `Masks`.
            enforces=None,
            # Weak, because a replaced optimizer's slots may be twice as large as the model.
            hooks=weakref.WeakSet(),
            compiled=weakref.WeakSet(),
        )
        self.origin = weights.origin()

    def look(self) -> None:
        """See `MaskTable`: layers may have been added or removed."""
        hidden, variables = self._hidden, _variables(self._hidden.model)
        if variables != hidden.variables:
            hidden.variables = variables
            weights = network(hidden.model).everything
            self._contents.weights = {weight.name: weight for weight in weights}
            MASKS.version += 1

    def _made(self, weight: TFWeight) -> VariableMasks:
        masks = VariableMasks(weight.variable, enforced=self._hidden.enforces is not False)
        for layer in weight.found.around[-1:]:
            refuse_lora(layer, weight.name, masks)
        return masks

    @property
    def enforces(self) -> bool:
        """Whether changes of masks are enforced, not only declared."""
        return bool(self._hidden.enforces)

    def declare(self) -> None:
        """From now on masks are declared, unless they are enforced already."""
        self._hidden.enforces = bool(self._hidden.enforces)

    def enforce(self, optimizer: keras.optimizers.Optimizer | None) -> None:
        """Enforces from now on, whatever updates the weights."""
        hidden = self._hidden
        optimizers = self._compiled() if optimizer is None else [optimizer]
        if not all(isinstance(each, keras.optimizers.Optimizer) for each in optimizers):
            raise InvalidArgument(
                f"Could not hold the masks of {shown(hidden.model)}: expected a Keras optimizer, "
                f"got {type(optimizer).__name__}. Pass the one that trains it, or only audit with "
                f"enforce=False."
            )
        for each in optimizers:
            hidden.hooks.add(install(innermost(each)))
        if not hidden.enforces:
            hidden.enforces = True
            for masks in self.masked.values():
                masks.fresh = masks.fresh or not masks.enforced
                self.enforce_now(masks)

    def optimizers(self, given: Any = None) -> list[Any]:
        """The innermost optimizers: the given one, else the model's, and others that update it.

        Without those that `compile` has replaced since masks were made.
        """
        if given is not None:
            return parts(innermost(given))
        self.look()
        own = [part for each in self._compiled() for part in parts(each)]
        others = updating(weight.trained for weight in self.weights.values())
        replaced = self._hidden.compiled.difference(own)
        return list(dict.fromkeys([*own, *(each for each in others if each not in replaced)]))

    def _compiled(self) -> list[Any]:
        """The innermost optimizers that the model has now."""
        own = list(map(innermost, optimizers_of(self._hidden.model)))
        self._hidden.compiled.update(own)
        return own

    def build_optimizer(self, optimizer: Any) -> None:
        """Gives the compiled optimizer its slots, as `fit` would; others stay."""
        model = self._hidden.model
        compiled: Any = getattr(model, "optimizer", None)
        if innermost(compiled) is optimizer and not optimizer.built:
            compiled.build(model.trainable_variables)

    def enforce_now(self, masks: VariableMasks) -> None:
        """Enforces a change; steps traced before a variable's first masks don't use them."""
        if not self._hidden.enforces:
            return
        masks.enforced = True
        self._find_hooks(masks)
        masks.put_back()
        for hook in masks.hooks:
            average = averages_of(hook.optimizer).get(id(masks.variable))
            if average is not None:
                masks.restore(average, masks.through, masks.held_now())
        if masks.fresh:
            masks.fresh = False
            retrace([masks.variable])

    def _find_hooks(self, masks: VariableMasks) -> None:
        """Also those of optimizers that the model was compiled with since masks were made."""
        masks.hooks.update(self._hidden.hooks)
        masks.hooks.update(map(install, self._compiled()))

    def clear_slots(self, variable: tf.Variable, where: Mask) -> None:
        """Resets the optimizer slots of some elements to their initial values."""
        masks = self.storage_of(variable)
        if masks is None:
            return
        self._find_hooks(masks)
        for hook in masks.hooks:
            renew(hook.optimizer, variable, where)

    def write(self, name: str, kept: Mask, trainable: Mask) -> None:
        """Sets the masks of a weight, the same in all workers of a strategy, or raises."""
        variable = self.weights[name].variable
        check_agreed(variable, f"the masks of {name!r}", kept, trainable)
        super().write(name, kept, trainable)

    def _settle(self) -> None:
        """Compares held values with those of a loaded file, and holds them as they are."""
        saved, self._hidden.sums = self._hidden.sums, None
        if saved is None:
            return
        self.look()
        for masks in self.masked.values():
            masks.refer_anew()
        still = self.masked.keys() & saved.keys()
        sums = {name: (own, self._saved(name).sums) for name, own in saved.items() if name in still}
        self._hidden.resumed = Resumed.of(sums)

    def _saved(self, name: str) -> SavedMasks:
        masks, axis = self.masked[name], self.weights[name].axis
        kept, through = masks.kept.numpy(), masks.through.numpy()
        return SavedMasks(kept, through, check_sums(masks.variable.numpy(), through, axis))

    @property
    def resumed(self) -> Resumed | None:
        """The result of loading masks and held values; None if none were loaded."""
        self.registry.settle()
        resumed: Resumed | None = self._hidden.resumed
        return resumed

    def serialize(self) -> bytes:
        """Masks and checksums of held values, one bit per element and mask, before compression."""
        if not tf.executing_eagerly():
            # `tf.saved_model.save` calls this while it builds a graph, and never restores it.
            return b""
        self.look()
        return packed.save(self.origin, {name: self._saved(name) for name in self.masked})

    def deserialize(self, string_value: bytes, source: str = "a saved model") -> None:
        """Reads what `serialize` wrote into some source, possibly before the weights are loaded."""
        if not string_value:
            return
        self.look()
        self.origin, loaded = packed.load(string_value, self.bounds, self.check_fits, source)
        for name in {*self.masked, *loaded}:
            masks = self.storage_for(name)
            free = np.ones(masks.variable.shape, bool)
            kept, through = loaded[name][:2] if name in loaded else (free, free)
            masks.kept.assign(kept)
            masks.through.assign(through)
            masks.let_be()
        self._hidden.sums = {name: saved.sums for name, saved in loaded.items()}
        # Not now: Keras may load the masks before the weights.
        MASKS.settle_by(self._settle)
        MASKS.version += 1
        retrace([masks.variable for masks in self.masked.values()])

    def __reduce__(self) -> tuple[Any, ...]:
        model = self._hidden.model
        text = f"a Keras model or layer, got a {type(model).__name__}. Copy its values into "
        text += "another one, and make Masks for that."
        if isinstance(model, keras.layers.Layer):
            text = "Masks or their model, got a part of Masks. Copy Masks, or dict(masks.kept)."
        raise InvalidArgument(f"Could not copy the masks of {shown(model)}: expected {text}")

    def save_own_variables(self, store: Any) -> None:
        """Writes the masks into a .keras or .weights.h5 file. Keras calls it."""
        store[STORED] = np.frombuffer(self.serialize(), np.uint8)

    def load_own_variables(self, store: Any) -> None:
        """Reads the masks; a file without any leaves them unchanged. Keras calls it."""
        if STORED in store.keys():  # noqa: SIM118 - Keras's store has no `in`
            self.look()
            # Keras's store reads all of a data set: its h5py group knows the size before.
            own = getattr(store, "_h5_entry_group", getattr(store, "group", store))
            self.deserialize(stored_bytes(own[STORED], self.bounds, "a saved model"))


def stored_bytes(stored: Any, bounds: Bounds, source: str) -> bytes:
    """The bytes of a data set of h5py, which isn't read if it is larger than masks can be."""
    with untrusted(f"load the masks in {source}", "those of Masks", MEND):
        # A data set may be in other files, or in pieces that are larger than itself.
        pieces = getattr(stored, "chunks", None) or (0,)
        outside = getattr(stored, "external", None) or getattr(stored, "is_virtual", False)
        sizes = stored.size, math.prod(pieces)
        if outside or stored.dtype != np.uint8 or max(sizes) > bounds.packed:
            raise ValueError(f"{stored.dtype} of {max(sizes)} elements")
        return bytes(stored[()].tobytes())


def _variables(model: Any) -> list[int]:
    """Identifies the current variables of a model; a mapping's never change."""
    return [] if isinstance(model, Mapping) else [id(each) for each in model.variables]


def retrace(variables: Iterable[tf.Variable]) -> None:
    """Makes `fit` trace steps again that may update variables. Your own steps are up to you."""
    ids = set(map(id, variables))
    for model in list(TRACED):
        if getattr(model, "train_function", None) is None:
            continue
        if not ids.isdisjoint(id(tf_variable(variable)) for variable in model.variables):
            model.make_train_function(force=True)
