"""Masks on the single weights of a model that is built already, and loading a model with them."""

from __future__ import annotations

import os
import zipfile
from functools import cached_property
from typing import Any

import h5py
import keras
import tensorflow as tf

from tb_pastnet.core.violation import Violation
from tb_pastnet.keras.audit.model_audit import audit_of
from tb_pastnet.keras.layers.refusals import refuse_weight
from tb_pastnet.keras.masks import rewind
from tb_pastnet.keras.masks.carried import ATTRIBUTE, attach, attached
from tb_pastnet.keras.masks.enforcer import MaskEnforcer
from tb_pastnet.keras.masks.mask_state import STORED, MaskState
from tb_pastnet.keras.masks.rewind import WEIGHTS, Rewound, Snapshot
from tb_pastnet.keras.model.weights import network
from tb_pastnet.record.audit.freeze_audit import Audit
from tb_pastnet.record.failures import LOGGER
from tb_pastnet.record.masks.commands import MaskCommands
from tb_pastnet.record.masks.packed import Resumed

_WEIGHTS = "model.weights.h5"


class Masks(MaskCommands):
    """Prunes and freezes single weights, or whole channels, of a model.

    Every element of a variable is free, frozen (held at its value) or pruned (held at zero), by two
    masks, in which 1 lets through: `kept` (0 = pruned) and `trainable` (0 = frozen). What is held
    stays bit-identical under every optimizer of Keras, its weight decay, momentum, clipping, moving
    averages, gradient accumulation and loss scaling. Held gradients are zeroed before clipping.

    A change takes effect at once, also in steps that are traced; after a variable's first mask a
    step of your own has to be traced again, which `fit` does by itself. The masks are saved with
    the model (.keras, .weights.h5, tf.train.Checkpoint); `pastnet.load_model` brings them back.

    Under a MultiWorkerMirroredStrategy make them, and call what changes them, in every worker: what
    would set other masks than another worker is an error, in all of them.

    Args:
        model: a built keras.Model or layer, a tf.Module, or a mapping of names to variables. The
            masks that it carries already are taken up.
        optimizer: the Keras optimizer that trains it. None: the one that it was compiled with.
        enforce: False only declares the masks, to be watched by a Recorder and by `audit`: nothing
            is written and no optimizer is needed.

    Attributes:
        kept: the kept mask of each variable by name, bool arrays; a copy at each access.
        trainable: the trainable mask likewise. Pruned elements count as trainable.
        state: what a Recorder reads, and what is saved with the model.

    Raises:
        InvalidArgument: the model isn't built, or there is no optimizer.
        UnsupportedBackend: Keras doesn't run on TensorFlow.

    Example:
        >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
        >>> model.compile("adam", "mse")
        >>> masks = Masks(model)
        >>> masks.prune("dense/kernel", channels=[1])
        >>> masks.sparsity()
        0.5
        >>> model.get_weights()[0][:, 1].tolist()
        [0.0, 0.0, 0.0]
    """

    state: MaskState
    _enforcer: MaskEnforcer

    def __init__(self, model: Any, optimizer: Any = None, enforce: bool = True) -> None:
        state = attached(model)
        if state is None:
            weights = network(model)
            state = MaskState(weights.everything)
            state.origin = weights.origin()
        enforcer = state.keeper = state.keeper or MaskEnforcer(model, state)
        if enforce:
            enforcer.enforce(optimizer)
        attach(model, state)
        self._model, self._optimizer = model, optimizer
        super().__init__(state, enforcer, refuse_weight)

    def snapshot(self) -> Snapshot:
        """Copies weights, statistics and the optimizer's state to the host, to rewind to."""
        return rewind.take(self.state, self._enforcer.optimizer())

    def rewind(self, snapshot: Snapshot, what: str = WEIGHTS) -> Rewound:
        """Goes back to a snapshot, with the masks of now.

        "weights" (Frankle et al., 1903.01611): surviving weights are bit-identical to those of the
        snapshot; pruned ones stay zero and frozen ones at their values. Statistics such as those of
        BatchNormalization go back as well, and so do the optimizer's slots, iterations and learning
        rate; slots of pruned weights are zero, and all are where the optimizer is another one.

        "learning_rate" (Renda et al., 2003.02389): only iterations and learning rate go back, so
        that a schedule replays; weights, statistics and slots stay.

        Seeds of random layers stay in both.

        Args:
            snapshot: as from `snapshot()`, of a model of the same structure.
            what: "weights" or "learning_rate".

        Returns:
            What was set back.

        Raises:
            InvalidArgument: the snapshot is of another model, or `what` is another word.
        """
        rewound = rewind.rewind(self.state, self._enforcer.optimizer(), snapshot, what)
        for masks in self.state.masked.values():
            self._enforcer.enforce_now(masks)
        return rewound

    def audit(self, step: int | None = None) -> list[Violation]:
        """Compares what is held bitwise with what it was when it was held, and tells what moved.

        A Recorder does so at each record; this is for training without one. The first call, best
        before training, begins to gather what later ones know of causes.

        Args:
            step: of the training, for the report. None: the optimizer's `iterations`.

        Returns:
            All violations so far, by their first step: variable, channel, how many elements, how
            far, and the likely cause.
        """
        optimizer = self._enforcer.optimizer()
        if step is None and optimizer is not None:
            step = int(tf.convert_to_tensor(optimizer.iterations))
        self._audit.check(step or 0)
        return self._audit.violations

    @cached_property
    def _audit(self) -> Audit:
        weights = list(self.state.weights.values())
        return audit_of(self._model, weights, lambda: self.state, self._optimizer)

    @property
    def resumed(self) -> Resumed | None:
        """What of masks and held values is as it was saved; None where nothing was loaded."""
        return self.state.resumed


def load_model(path: str | os.PathLike[str], **arguments: Any) -> Any:
    """Loads a model as `keras.models.load_model` does, and the masks that were saved with it.

    Whether masks and held values came back bit-identical is told by `Masks(model).resumed`; where
    some didn't, it is logged as well.

    Args:
        path: a .keras file, of ours or of a stock Keras; a file without masks gives none.
        arguments: as for `keras.models.load_model`: custom_objects, compile, safe_mode.

    Returns:
        The model. `pastnet.Masks(model)` finds its masks; they hold as soon as it trains.

    Raises:
        InvalidArgument: the file's masks are of other variables.
        ValueError: from Keras, where the file can't be read.

    Example:
        >>> import tempfile, numpy as np
        >>> model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
        >>> model.compile("adam", "mse")
        >>> Masks(model).prune("dense/kernel", channels=[1])
        >>> _ = model.fit(np.ones((4, 3)), np.ones((4, 2)), verbose=0)
        >>> path = f"{tempfile.mkdtemp()}/model.keras"
        >>> model.save(path)
        >>> loaded = load_model(path)
        >>> Masks(loaded).sparsity(), bool(Masks(loaded).resumed)
        (0.5, True)
    """
    model = keras.models.load_model(path, **arguments)
    masks = Masks(model)
    stored = _stored(os.fspath(path))
    if stored is not None:
        masks.state.deserialize(stored)
    resumed = masks.resumed
    if resumed is not None and not resumed:
        LOGGER.warning("Loaded %s: %s", os.fspath(path), resumed)
    return model


def _stored(path: str) -> bytes | None:
    """The masks in a saved model. Keras itself has passed over them, as the model had none yet."""
    if tf.io.gfile.isdir(path):
        with tf.io.gfile.GFile(f"{path}/{_WEIGHTS}", "rb") as file:
            return _read(file)
    with tf.io.gfile.GFile(path, "rb") as file:
        if not zipfile.is_zipfile(file):
            return None
        with zipfile.ZipFile(file) as archive, archive.open(_WEIGHTS) as weights:
            return _read(weights)


def _read(file: Any) -> bytes | None:
    with h5py.File(file, "r") as stored:
        masks = stored.get(f"{ATTRIBUTE}/vars/{STORED}")
        return None if masks is None else bytes(masks[()].tobytes())
