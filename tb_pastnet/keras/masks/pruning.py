"""Prunes during Keras's `fit`, by a schedule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tb_pastnet.core.arguments import answered
from tb_pastnet.core.decay import OneShot, PolynomialDecay
from tb_pastnet.keras.masks.carried import check_concerns
from tb_pastnet.keras.masks.masks import Masks
from tb_pastnet.keras.model.tf_variable import tf_variable
from tb_pastnet.keras.steps import CountingCallback
from tb_pastnet.record.masks.scheduled_pruning import ScheduledPruning


@answered
class PruningCallback(CountingCallback):
    """Prunes the smallest weights step by step.

    Place it before `PastNetCallback` in `callbacks=[…]`: Keras calls them in order, so a
    record shows the masks of its own step.

    It prunes after batches whose number is a multiple of `every`, and after the last step of the
    schedule; at step 0 before the first batch. Under `steps_per_execution=k` it prunes at the end
    of the execution with such a step. Steps are the optimizer's, counted in batches, so a resumed
    training continues where it stopped, and prunes at once if the end has passed.

    Args:
        masks: `pastnet.Masks` of the model.
        schedule: `PolynomialDecay` or `OneShot`.
        every: the number of batches between prunings.
        scope: "global" or "layer", as in `Masks.prune_smallest`.
        structured: whether whole channels are pruned, as in `Masks.prune_smallest`.
        variables: which variables, as in `Masks.prune_smallest`.

    Raises:
        InvalidArgument: an argument is invalid. Errors of `Masks.prune_smallest` are raised in
            `fit`.

    Example:
        >>> import keras, numpy as np
        >>> class Masks:
        ...     def prune_smallest(self, sparsity, **how):
        ...         print(f"{sparsity:.2f}", how)
        >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> pruning = PruningCallback(Masks(), PolynomialDecay(0, 0.8, 0, 4, power=1), every=2)
        >>> _ = model.fit(np.ones((4, 2)), np.ones(4), 1, verbose=0, callbacks=[pruning])
        0.40 {'scope': 'global', 'structured': False, 'variables': None}
        0.80 {'scope': 'global', 'structured': False, 'variables': None}
    """

    def __init__(
        self,
        masks: Masks,
        schedule: PolynomialDecay | OneShot,
        every: int = 100,
        scope: str = "global",
        structured: bool = False,
        variables: Iterable[Any] | None = None,
    ) -> None:
        super().__init__()
        self._pruning = ScheduledPruning(masks, schedule, every, scope, structured, variables)
        self._masks = masks
        self._counted: Any = None

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Prunes if it is due."""
        start = self._count.step
        self._count.advance(self.model, batch - self._first + 1)
        self._prune(start)

    def on_train_end(self, logs: Any = None) -> None:
        """Remembers where it stopped."""
        self._count.rest(self.model)

    def _begin_fit(self) -> None:
        if self._count.begin(self.model, going_on=self._counted is self.model):
            self._pruning.restart()
        self._counted = self.model
        if isinstance(self._masks, Masks):
            variables = map(tf_variable, self.model.variables)
            check_concerns(self._masks.state, variables, "prune the model that is trained")
        self._prune(self._count.step - 1)

    def _prune(self, start: int) -> None:
        self._pruning.advance(start, self._count.step)
