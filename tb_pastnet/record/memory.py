"""The memory that a recorder takes, and what to do where that is much."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from tb_pastnet.core.counted import size_text
from tb_pastnet.record.failures import LOGGER

_SHARE = 10
"""A recorder that takes more than this part of the free memory says so."""


def free_memory() -> int | None:
    """Bytes that new work can take on this machine, by the kernel's estimate; None: unknown."""
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        line = next(line for line in lines if line.startswith("MemAvailable:"))
        return 1024 * int(line.split()[1])
    return None


def warn_of_memory(copies: int, held: int) -> None:
    """Logs a line if recording takes much of the free memory.

    Args:
        copies: bytes of past copies.
        held: bytes of the values that held weights are compared with.
    """
    free = free_memory()
    if free is None or _SHARE * (copies + held) <= free:
        return
    mend = (
        "audit='fingerprints' compares them without copies"
        if held > copies
        else ("record fewer weights by variables=, or freeze what doesn't train before")
    )
    LOGGER.warning(
        "Recording takes %s for past values and %s for the values of frozen weights, of %s that "
        "are free: %s.",
        *(size_text(copies), size_text(held), size_text(free), mend),
    )
