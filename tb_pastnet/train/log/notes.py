"""What went wrong while observing: logged once per cause, and counted."""

from __future__ import annotations

import logging

LOGGER = logging.getLogger("tb_pastnet")


class Notes:
    """Counts failures by their text.

    Example:
        >>> notes = Notes()
        >>> LOGGER.disabled = True
        >>> notes.add("Could not write"), notes.add("Could not write")
        (None, None)
        >>> LOGGER.disabled = False
        >>> notes.counts()
        {'Could not write': 2}
    """

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, text: str, error: BaseException | None = None) -> None:
        """Counts a failure, and logs the first of its kind.

        Args:
            text: what could not be done.
            error: what was raised; its class and text make the cause.
        """
        if error is not None:
            # Not str(error): it names a file, and so would differ with every segment.
            reason = getattr(error, "strerror", None) or str(error) or "no reason given"
            text = f"{text}: {type(error).__name__}: {reason}"
        count = self._counts.get(text, 0)
        self._counts[text] = count + 1
        if count == 0:
            LOGGER.warning("%s. Training goes on; further ones are counted.", text)

    def counts(self) -> dict[str, int]:
        """A copy of what was counted, by text."""
        return dict(self._counts)
