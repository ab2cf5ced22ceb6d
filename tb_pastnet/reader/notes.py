"""Notes of the tab about records that it can't show."""

from __future__ import annotations

from collections import Counter

from tb_pastnet.errors import ForeignRecord, UnknownVersion, UnreadableRecord

FOREIGN = "Records that tb_pastnet did not write, under its name"
NEWER = "Records in a newer format. Update tb-pastnet where TensorBoard runs"
DAMAGED = "Damaged records: their bytes changed after they were written, or were cut off"
WITHHELD = "Series that TensorBoard could not read: a tensor in them is broken"
IN_PART = "Read in part: the log claims more than its bytes can hold, see SECURITY.md"
RESHAPED = "Records from before a layer changed its number of channels or their axis"
NO_DESCRIPTION = "No readable description of the network, so its layers are unknown"
LATER_STATISTICS = (
    "Records with additional statistics that are unknown to this version. "
    "Update tb-pastnet where TensorBoard runs"
)
OTHER_AXES = (
    "Layers with channels along another axis in one of the runs, as fused experts of earlier "
    "versions: neither channels nor origins can be compared"
)
SAMPLED = "Records left out to limit TensorBoard's memory: too many channels"
MASKS_LOST = "Changes of masks that were lost: pruned weights there are counted from the records"
MASKS_DISAGREE = (
    "Steps at which records and the log of mask changes disagree on the pruned weights: "
    "the records are right"
)
MASKS_TOO_MANY = "Changes of masks left out to limit TensorBoard's memory"
MASKS_UNREAD = "Masks that can't be read: their overlap with others is unknown"
VIOLATIONS_TOO_MANY = "Violations left out to limit TensorBoard's memory"
VIOLATIONS_ELSEWHERE = "Violations of channels that the latest network doesn't have"
FUNCTION_MISSING = "Records without values of the probe: it failed there, or they can't be read"
FUNCTION_TOO_MANY = "Records of the probe left out to limit TensorBoard's memory"
AT_ONCE = "Recorded while another process recorded into the same directory: each is a separate run"
UNREAD = "The run could not be read"
NO_MEMORY = f"{UNREAD}: not enough memory"
NOT_LISTED = "TensorBoard failed to list its runs: the last known runs are shown"
INSIDE = (
    "TensorBoard was started inside the directory of a single writer. "
    "Start it one directory above to see this run"
)

Notes = Counter[str]

_MOST = 50


def reason(error: UnreadableRecord) -> str:
    """The note for a message that could not be decoded."""
    if isinstance(error, ForeignRecord):
        return FOREIGN
    if isinstance(error, UnknownVersion):
        return NEWER
    return DAMAGED


def is_damaged(notes: Notes) -> bool:
    """Whether some records are there, but can't be read."""
    return any(notes[text] for text in (FOREIGN, NEWER, DAMAGED, WITHHELD))


def listed(notes: Notes) -> list[dict[str, str | int]]:
    """The notes for the routes' answers, the most frequent first."""
    return [{"text": text, "count": count} for text, count in notes.most_common(_MOST)]
