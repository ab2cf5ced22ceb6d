"""Names in a log: of the plugin, of tags, and of the directories of lineages."""

from __future__ import annotations

import re
from typing import NamedTuple

from tb_pastnet.errors import InvalidArgument

PLUGIN = "pastnet"
"""The plugin's name in summary metadata and in the URL of its routes."""

TAG_DESCRIPTION = "description"
DESCRIPTIONS = (TAG_DESCRIPTION, "description/copy")
"""The description is stored under two tags.

TensorBoard's fast loader takes a series' plugin from its first event, unchecked: a bit that flips
there hides the series in all segments, and with it the network.
"""

TAG_TIMELINE = "timeline"
TAG_MASKS = "masks"
TAG_VIOLATIONS = "violations"
TAG_FUNCTION = "function"
TAG_OVERHEAD = "overhead"
TAG_SKETCHES = "sketches"
TAG_FOLLOWS = "follows"
TAG_STANDING = "standing"
TAG_COMPARED = "compared"
MASKS = ("kept", "trainable")
"""The two masks of a variable: 0 is pruned in the first, frozen in the second."""

_CHANNELS = "channels/"
_TOGETHER = "together/"
_DIRECTORY = re.compile(r"(?:(.*)/)?pastnet\.(\d{4,9})\.([0-9a-f]{8})", re.DOTALL)
_ROOT = "."


class RunName(NamedTuple):
    """The name of a lineage's directory, parsed; the run `.` is the root of the log directory.

    Lineages of a run are ordered by ordinal, not by a clock; the writer's 32-bit id breaks ties.
    """

    run: str
    ordinal: int
    lineage: int


def channels_tag(variable: str) -> str:
    """The tag that a variable's records are stored under."""
    return _CHANNELS + variable


def together_tag(variable: str) -> str:
    """The tag of the records of several variables, by the first of them."""
    return _TOGETHER + variable


def is_channels(tag: str) -> bool:
    """Whether records of one or of several variables are stored under a tag."""
    return tag.startswith((_CHANNELS, _TOGETHER))


def mask_tag(mask: str, variable: str) -> str:
    """The tag that the changes of a mask, one of `MASKS`, are stored under."""
    if mask not in MASKS:
        raise InvalidArgument(
            f"Could not name a mask's tag: expected one of {', '.join(MASKS)}, got {mask!r}. "
            f"Use one of these."
        )
    return f"{mask}/{variable}"


def mask_of(tag: str) -> tuple[str, str] | None:
    """The mask and the variable that a tag holds changes of; None for any other tag."""
    mask, slash, variable = tag.partition("/")
    return (mask, variable) if slash and mask in MASKS else None


def lineage_directory(ordinal: int, lineage: int) -> str:
    """The directory of a lineage, below the user's log directory: pastnet.0002.3f9a2c1b."""
    return f"{PLUGIN}.{ordinal:04d}.{lineage:08x}"


def parse_run(tensorboard_run: str) -> RunName | None:
    """Reads the name that TensorBoard gives to a lineage's directory; None if it isn't one."""
    match = _DIRECTORY.fullmatch(tensorboard_run)
    if match is None:
        return None
    return RunName(match[1] or _ROOT, int(match[2]), int(match[3], 16))
