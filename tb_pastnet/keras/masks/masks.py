"""Masks on the single weights of a built model, and loading a model with them."""

from __future__ import annotations

import os
import zipfile
from typing import Any

import h5py
import keras
import tensorflow as tf

from tb_pastnet.core.arguments import answered
from tb_pastnet.core.subject import KERAS, check_subject
from tb_pastnet.core.violation import Violation
from tb_pastnet.keras.audit.model_audit import audit_of
from tb_pastnet.keras.layers.refusals import refuse_weight
from tb_pastnet.keras.masks import rewind
from tb_pastnet.keras.masks.carried import ATTRIBUTE, attach, attached, patch_keras
from tb_pastnet.keras.masks.mask_state import STORED, MaskState, stored_bytes
from tb_pastnet.keras.model.optimizers import innermost, optimizers_of, steps_of
from tb_pastnet.record.failures import LOGGER
from tb_pastnet.record.masks.array_file import untrusted
from tb_pastnet.record.masks.commands import MaskCommands
from tb_pastnet.record.masks.packed import Bounds, Resumed
from tb_pastnet.record.masks.snapshots import WEIGHTS, Rewound, Snapshot
from tb_pastnet.record.masks.view_audit import ViewAudit

_WEIGHTS = "model.weights.h5"


@answered
class Masks(MaskCommands):
    """Prunes and freezes single weights, or whole channels, of a model.

    Every element of a variable is free, frozen (held at its value) or pruned (held at zero), by two
    masks, in which 1 lets through: `kept` (0 = pruned) and `trainable` (0 = frozen). Frozen and
    pruned weights stay bit-identical under every Keras optimizer, including its weight decay,
    momentum, clipping, moving averages, gradient accumulation and loss scaling. Their gradients are
    zeroed before clipping. Masks belong to weights: this is a view of the model's current ones.

    A change takes effect at once, even in traced steps; after a variable's first mask your own step
    has to be traced again, which `fit` does by itself. The masks are saved with the model (.keras,
    .weights.h5, tf.train.Checkpoint), and copied and pickled with it; `pastnet.load_model` brings
    them back. A copy of `Masks` is of a copy of the model.

    Under a MultiWorkerMirroredStrategy make them, and call what changes them, in every worker: what
    would set different masks in two workers is an error in all of them.

    Args:
        model: a built keras.Model or layer, a tf.Module, or a mapping of names to variables. The
            masks that it already carries are used.
        optimizer: the Keras optimizer that trains it, whose slots `regrow` and `rewind` set. None:
            the one that it was compiled with, and those that have updated its weights.
        enforce: False only declares the masks, for a Recorder and `audit`: no weight is written.

    Attributes:
        kept: the kept mask of each variable by name, bool arrays; a copy at each access.
        trainable: the trainable mask of each variable, copies as well. Pruned elements count as
            trainable.
        model: whose masks these are.
        state: the masks that a Recorder reads, and that are saved with the model.

    Raises:
        InvalidArgument: the model isn't built, or the optimizer isn't a Keras one.
        UnsupportedBackend: Keras doesn't run on TensorFlow.

    Example:
        >>> import keras
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

    def __init__(self, model: Any, optimizer: Any = None, *, enforce: bool = True) -> None:
        check_subject(model, KERAS, "hold the weights of")
        state = attached(model)
        if state is None:
            state = MaskState(model)
        patch_keras()
        state.declare()
        if enforce:
            state.enforce(optimizer)
        attach(model, state)
        self.model, self._optimizer, self._enforce = model, optimizer, enforce
        self._audit = ViewAudit(
            lambda weights: audit_of(model, weights, lambda: state, self._optimizer)
        )
        super().__init__(state, state, refuse_weight)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy or pickle is of the model, with its own masks."""
        compiled = map(innermost, optimizers_of(self.model))
        own = any(each is innermost(self._optimizer) for each in compiled)
        optimizer = None if own else self._optimizer
        return _of_copy, (self.model, optimizer, self._enforce, self.state.serialize())

    def snapshot(self) -> Snapshot:
        """Copies weights, statistics and the optimizers' state to the host, to rewind to."""
        return rewind.take(self.state, self.state.optimizers(self._optimizer))

    def rewind(self, snapshot: Snapshot, what: str = WEIGHTS) -> Rewound:
        """Goes back to a snapshot, with the current masks.

        "weights" (Frankle et al., 1903.01611): remaining weights are bit-identical to those of the
        snapshot; pruned ones stay zero and frozen ones at their values. Statistics such as those of
        BatchNormalization go back as well, and so do the slots, iterations and learning rate of all
        optimizers. Slots of pruned weights get their initial values, and so do all slots of an
        optimizer of another class, or one that was built since.

        "learning_rate" (Renda et al., 2003.02389): only iterations and learning rate go back, so a
        schedule replays; weights, statistics and slots stay.

        Seeds of random layers stay in both.

        Args:
            snapshot: from `snapshot()`, of a model of the same structure.
            what: "weights" or "learning_rate".

        Returns:
            What was set back.

        Raises:
            InvalidArgument: the snapshot is of another model, or `what` is invalid.
        """
        optimizers = self.state.optimizers(self._optimizer)
        rewound = rewind.rewind(self.state, optimizers, snapshot, what)
        for masks in self.state.masked.values():
            self.state.enforce_now(masks)
        return rewound

    def audit(self, step: int | None = None) -> list[Violation]:
        """Compares held weights bitwise with the values at which they were held.

        A Recorder does so at each record; this is for training without one. The first call, best
        made before training, starts collecting the facts from which later calls find causes.

        Args:
            step: of the training, for the report. None: the optimizer's `iterations`.

        Returns:
            All violations so far, by their first step: variable, channel, how many elements, how
            far, and the likely cause.
        """
        if step is None:
            step = max(map(steps_of, self.state.optimizers(self._optimizer)), default=0)
        self.state.look()
        return self._audit.check(self.state.weights, step)

    @property
    def resumed(self) -> Resumed | None:
        """Which masks and held values match those saved; None if nothing was loaded."""
        return self.state.resumed


def _of_copy(model: Any, optimizer: Any, enforce: bool, stored: bytes) -> Masks:
    masks = Masks(model, optimizer, enforce=enforce)
    if not masks.state.masked:
        # A mapping's: a Keras model carries them itself.
        masks.state.deserialize(stored)
        masks.state.registry.settle()
    return masks


def load_model(path: str | os.PathLike[str], **arguments: Any) -> Any:
    """Loads a model like `keras.models.load_model`, with the masks that were saved with it.

    `Masks(model).resumed` shows whether masks and held values were restored bit-identical;
    differences are also logged.

    Args:
        path: a .keras file, with or without masks.
        arguments: as for `keras.models.load_model`: custom_objects, compile, safe_mode.

    Returns:
        The model. `pastnet.Masks(model)` finds its masks; they are enforced as soon as it trains.

    Raises:
        InvalidArgument: the file is damaged, or its masks are of other variables.
        ValueError: from Keras, if it can't load the file.

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
    _verify(os.fspath(path))
    model = keras.models.load_model(path, **arguments)
    masks = Masks(model)
    source = repr(_base_name(path))
    stored = _stored(os.fspath(path), masks.state.bounds, source)
    if stored is not None:
        masks.state.deserialize(stored, source)
    resumed = masks.resumed
    if resumed is not None and not resumed:
        LOGGER.warning("Loaded %s: %s", os.fspath(path), resumed)
    return model


def _base_name(path: str | os.PathLike[str]) -> str:
    return os.fspath(path).replace("\\", "/").rstrip("/").rpartition("/")[2]


def _verify(path: str) -> None:
    """Compares the checksums of a .keras file: HDF5 has none, and Keras reads it in any order."""
    if not path.endswith(".keras") or not tf.io.gfile.exists(path) or tf.io.gfile.isdir(path):
        return
    task, mend = f"load {_base_name(path)!r}", "Load an earlier file."
    with (
        tf.io.gfile.GFile(path, "rb") as file,
        untrusted(task, "a .keras file", mend),
        zipfile.ZipFile(file) as archive,
    ):
        # With a flipped bit, a directory may be empty.
        archive.getinfo("config.json")
        if (damaged := archive.testzip()) is not None:
            raise ValueError(f"a wrong checksum of {damaged}")


def _stored(path: str, bounds: Bounds, source: str) -> bytes | None:
    """The masks in a saved model. Keras itself has skipped them, because the model had none yet."""
    if tf.io.gfile.isdir(path):
        with tf.io.gfile.GFile(f"{path}/{_WEIGHTS}", "rb") as file:
            return _read(file, bounds, source)
    with tf.io.gfile.GFile(path, "rb") as file:
        if not zipfile.is_zipfile(file):
            return None
        with zipfile.ZipFile(file) as archive, archive.open(_WEIGHTS) as weights:
            return _read(weights, bounds, source)


def _read(file: Any, bounds: Bounds, source: str) -> bytes | None:
    with h5py.File(file, "r") as stored:
        masks = stored.get(f"{ATTRIBUTE}/vars/{STORED}")
        return None if masks is None else stored_bytes(masks, bounds, source)
