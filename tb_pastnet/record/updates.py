"""How many updates of optimizers make a step, where these are counted between calls of `record`."""

from __future__ import annotations


class Updates:
    """Turns updates into steps.

    A step may have several updates: of several optimizers, or more of one than of another. Between
    two calls there are as many in each step, or it isn't known in which step an update was made.

    Attributes:
        trainers: how many optimizers there are at least.
        counted: whether it is known in which steps the last updates were made.
        sparse: whether calls leave out steps.
    """

    def __init__(self) -> None:
        self.trainers = 1
        self.counted = self.sparse = False
        self._learned = 0
        self._exact = 0

    @property
    def each(self) -> int:
        """Updates of a step, as far as is known."""
        return self._learned or self.trainers

    def back(self, made: int) -> int | None:
        """How many steps the last updates took; None if that isn't certain."""
        steps, rest = divmod(made, self._exact) if self._exact else (0, 1)
        return None if rest else steps

    def call(self, made: int, stride: int) -> None:
        """Notes the updates since the last call, `stride` steps ago."""
        exact = 0 if made % stride else made // stride
        # Others than before may be chance: some steps had fewer, or training began later.
        self._exact = exact if stride == 1 or exact == self.each else 0
        if stride == 1 or exact > self.each:
            self._learned = exact
        self.counted = self._exact > 0
        self.sparse = stride > 1 and made > self.each
