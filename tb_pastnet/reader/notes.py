"""What the tab says of records that it can't show."""

from __future__ import annotations

from collections import Counter

from tb_pastnet.errors import ForeignRecord, UnknownVersion, UnreadableRecord

FOREIGN = "Records that tb_pastnet did not write, under its name"
NEWER = "Records in a newer format. Update tb-pastnet where TensorBoard runs"
DAMAGED = "Damaged records: their bytes changed after they were written, or were cut off"
WITHHELD = "Series that TensorBoard could not hand out: a tensor in them is broken"
RESHAPED = "Records from before a layer changed its number of channels"
NO_DESCRIPTION = "No readable description of the network, so its layers are unknown"
LATER_STATISTICS = (
    "Records with statistics that this version doesn't know, beside those that are shown. "
    "Update tb-pastnet where TensorBoard runs"
)
SAMPLED = "Records left out so that TensorBoard's memory stays bounded: too many channels"
MASKS_LOST = "Changes of masks that were lost: the records tell how many weights were pruned there"
MASKS_DISAGREE = (
    "Steps at which records and the log of mask changes disagree on the pruned weights: "
    "the records are right"
)
MASKS_TOO_MANY = "Changes of masks left out so that TensorBoard's memory stays bounded"
MASKS_UNREAD = "Masks that can't be read: how far they overlap with others isn't known"
VIOLATIONS_TOO_MANY = "Violations left out so that TensorBoard's memory stays bounded"
VIOLATIONS_ELSEWHERE = "Violations of channels that the latest network doesn't have"
FUNCTION_MISSING = "Records without values of the probe: it failed there, or they can't be read"
FUNCTION_TOO_MANY = "Records of the probe left out so that TensorBoard's memory stays bounded"
AT_ONCE = (
    "Recorded while another process recorded into the same directory: each is a run of its own"
)
NOT_LISTED = "TensorBoard failed to list its runs: those are shown that were known before"
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


def listed(notes: Notes) -> list[dict[str, str | int]]:
    """The notes as the routes answer them, the most frequent first."""
    return [{"text": text, "count": count} for text, count in notes.most_common(_MOST)]
