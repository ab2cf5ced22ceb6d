"""The audit of a model that runs eagerly, or in compiled steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from tb_pastnet.keras.audit.held_weight import HeldWeight, which_moved
from tb_pastnet.keras.audit.optimizer_facts import KerasOptimizerFacts, assignments
from tb_pastnet.keras.masks.enforcer import attached
from tb_pastnet.keras.masks.optimizers import innermost
from tb_pastnet.keras.measure.runner import EAGER
from tb_pastnet.keras.model.weights import TFWeight, TrainableFlags
from tb_pastnet.record.audit.freeze_audit import Audit, AuditSource
from tb_pastnet.record.audit.optimizer_causes import OptimizerCauses
from tb_pastnet.record.masks.mask_table import MaskTable


class ModelAudit(AuditSource[HeldWeight]):
    """Compares all held weights in one compiled function, made anew when others are held."""

    def __init__(
        self,
        model: Any,
        weights: Sequence[TFWeight],
        optimizer: keras.optimizers.Optimizer | None = None,
    ) -> None:
        self.weights = [weight for weight in weights if not weight.statistic]
        self.causes = OptimizerCauses(self)
        self._model = model
        self._given = optimizer
        self._flags = TrainableFlags(self.weights)
        self._key: Any = None
        self._function: Any = None

    def held(self, weight: TFWeight) -> HeldWeight:
        """See `AuditSource`."""
        return HeldWeight(weight)

    def moved(self, held: Sequence[HeldWeight]) -> Sequence[bool]:
        """See `AuditSource`."""
        key = [(weight, weight.version) for weight in held]
        if key != self._key:
            self._key = key
            self._function = EAGER.fetch(lambda: which_moved(held))
        moved: list[bool] = self._function().tolist() if held else []
        return moved

    def quick_key(self) -> tuple[bool, ...]:
        """See `AuditSource`."""
        return self._flags.quick_key()

    def trainable(self) -> list[bool]:
        """See `AuditSource`."""
        return self._flags.read()

    def optimizer(self, masks: MaskTable | None) -> KerasOptimizerFacts | None:
        """The innermost optimizer that trains, None where none of Keras is known."""
        optimizer = self._given
        if optimizer is None and masks is not None and masks.keeper is not None:
            optimizer = masks.keeper.optimizer()
        elif optimizer is None:
            optimizer = getattr(self._model, "optimizer", None)
        optimizer = innermost(optimizer)
        of_keras = isinstance(optimizer, keras.optimizers.Optimizer)
        return KerasOptimizerFacts(optimizer) if of_keras else None

    def step(self) -> Any:
        """The function that `fit` has compiled."""
        return getattr(self._model, "train_function", None)

    def assigned(self, held: HeldWeight) -> int:
        """How often a weight was set by hand since this was asked first."""
        return assignments(held.owner)


def audit_of(
    model: Any,
    weights: Sequence[TFWeight],
    masks: MaskTable | None = None,
    optimizer: keras.optimizers.Optimizer | None = None,
) -> Audit:
    """Audits a model from now on; `masks` are those of one that can't carry them.

    Of a distribution strategy the first replica is read.
    """
    return Audit(ModelAudit(model, weights, optimizer), lambda: masks or attached(model))
