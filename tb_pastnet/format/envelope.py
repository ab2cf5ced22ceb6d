"""The envelope around every record: its kind, its version, and our own checksum.

TensorBoard's fast loader skips the checksum of the event file, so a flipped bit would be drawn as
true. Ours also covers the place of a record (tag, step, lineage): a record that was moved or
renamed is as unreadable as an altered one. docs/reference/record_format.md has its fields, under
"The sealed message".
"""

from __future__ import annotations

import enum
import struct
import zlib

from tb_pastnet.errors import DamagedRecord, ForeignRecord, InvalidArgument, UnknownVersion
from tb_pastnet.format import limits

MAGIC = b"PAST"
_HEAD = struct.Struct("<4sBBHI")  # magic, version, kind, 0, checksum
_PLACE = struct.Struct("<BBHqI")  # version, kind, 0, step, lineage


class Kind(enum.IntEnum):
    """The kind of payload of a message."""

    CHANNELS = 1
    TIMELINE = 2
    DESCRIPTION = 3
    MASKS = 4
    MASK = 5
    VIOLATIONS = 6
    FUNCTION = 7
    OVERHEAD = 8
    SKETCHES = 10
    FOLLOWS = 11
    STANDING = 9
    COMPARED = 12


NEWEST = {**dict.fromkeys(Kind, 1), Kind.CHANNELS: 2, Kind.TIMELINE: 2}
"""The version of each kind that is written; all from 1 on are read.

Each kind has its own version: a tb_pastnet that doesn't support a new layout still reads the
others.
"""


def seal(payload: bytes, kind: Kind, *, tag: str, step: int, lineage: int) -> bytes:
    """Puts a payload into its envelope, for the tag, step and lineage that it is stored under.

    The lineage is the writer's 32-bit id, 0 in a user's own writer. Raises InvalidArgument if the
    message is larger than `unseal` opens.
    """
    if _HEAD.size + len(payload) > limits.MAX_MESSAGE:
        raise InvalidArgument(
            f"Could not encode {_shown(tag)}: expected a message of at most {limits.MAX_MESSAGE} "
            f"bytes, got {_HEAD.size + len(payload)}. Store it in several messages."
        )
    version = NEWEST[kind]
    crc = _checksum(payload, version, kind, 0, tag, step, lineage)
    return _HEAD.pack(MAGIC, version, kind, 0, crc) + payload


def unseal(message: bytes, kind: Kind, *, tag: str, step: int, lineage: int) -> bytes:
    """Opens an envelope and verifies that its content is what was written there.

    The message is untrusted; kind, tag, step and lineage are those of the place where it was found.
    `version_of` returns the version of the payload.

    Raises:
        ForeignRecord: the bytes are not of tb_pastnet.
        UnknownVersion: a newer tb_pastnet wrote them.
        DamagedRecord: the checksum, the kind or the place doesn't match.
    """
    if len(message) < _HEAD.size or message[:4] != MAGIC:
        raise ForeignRecord(
            f"Could not read a record of {_shown(tag)}: expected bytes that begin with {MAGIC!r}, "
            f"got {bytes(message[:4])!r}. Another program wrote under the name of tb_pastnet."
        )
    if len(message) > limits.MAX_MESSAGE:
        raise DamagedRecord(
            f"Could not read a record of {_shown(tag)}: expected at most {limits.MAX_MESSAGE} "
            f"bytes, got {len(message)}. The record is skipped."
        )
    _, version, stored_kind, reserved, crc = _HEAD.unpack_from(message)
    newest = NEWEST.get(stored_kind, 1)
    if not 1 <= version <= newest:
        raise UnknownVersion(
            f"Could not read a record of {_shown(tag)}: expected format version "
            f"{' or '.join(map(str, range(1, newest + 1)))}, got {version}. Update tb-pastnet "
            f"where TensorBoard runs."
        )
    payload = bytes(message[_HEAD.size :])
    checksum = _checksum(payload, version, stored_kind, reserved, tag, step, lineage)
    if crc != checksum or stored_kind != kind:
        raise DamagedRecord(
            f"Could not read a record of {_shown(tag)}: expected its checksum to match at step "
            f"{step}, got a different one. The bytes were changed after they were written."
        )
    return payload


def payload_of(message: bytes, most: int) -> bytes:
    """The first bytes of the payload, at most so many, unverified."""
    return bytes(message[_HEAD.size : _HEAD.size + most])


def version_of(message: bytes) -> int:
    """The version of a message that `unseal` opened."""
    return message[4]


def _checksum(
    payload: bytes, version: int, kind: int, reserved: int, tag: str, step: int, lineage: int
) -> int:
    place = _PLACE.pack(version, kind, reserved, step, lineage)
    place += tag.encode("utf-8", "surrogatepass") + b"\0"
    return zlib.crc32(payload, zlib.crc32(place))


def _shown(tag: str) -> str:
    return repr(tag if len(tag) <= 80 else tag[:77] + "...")
