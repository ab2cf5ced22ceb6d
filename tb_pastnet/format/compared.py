"""What was compared in a lineage so far: the newest readable message has it all.

docs/reference/record_format.md has its fields. They are deflated: most weights are alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tb_pastnet.core.compared import WAYS, Compared, HeldSpan, HeldValues
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format import limits, planes, varint
from tb_pastnet.format.budget import COMPARED_BYTES
from tb_pastnet.format.envelope import Kind, seal, unseal


def encode_compared(compared: Compared, *, tag: str, step: int, lineage: int) -> bytes:
    """Packs and seals it; raises InvalidArgument if a reader would refuse it."""
    _check(compared)
    first, last = compared.first_step, compared.last_step
    numbers = [
        compared.records,
        compared.failed,
        compared.known,
        *_known_step(first),
        *_known_step(last),
    ]
    numbers += [*_by_number(compared.moved), len(compared.computed), *_gaps(compared.computed)]
    numbers += [*_by_number(compared.pruned), len(compared.held), *_gaps(compared.held)]
    for number in sorted(compared.held):
        own = compared.held[number]
        numbers += [own.most, WAYS.index(own.by), own.changed, *_known_step(own.changed_at)]
        numbers += [len(own.spans)]
        numbers += [int(field) for span in own.spans for field in span]
    raw = varint.encode(numbers)
    payload = varint.encode([len(raw)]) + planes.deflate(raw, 6)
    return seal(payload, Kind.COMPARED, tag=tag, step=step, lineage=lineage)


def decode_compared(message: bytes, *, tag: str, step: int, lineage: int) -> Compared:
    """Opens a message and restores what it says; raises UnreadableRecord."""
    payload = unseal(message, Kind.COMPARED, tag=tag, step=step, lineage=lineage)
    outer = varint.Reader(payload)
    size = outer.number(min(limits.MAX_COMPARED, COMPARED_BYTES.most(outer.left)))
    reader = varint.Reader(planes.inflate(outer.take(outer.left), size))
    records, failed, known = (reader.number(limits.MAX_STEP) for _ in range(3))
    first, last = _step(reader), _step(reader)
    moved = _read_by_number(reader)
    computed = frozenset(_read_numbers(reader, _count(reader)))
    pruned = _read_by_number(reader)
    held = {number: _read_held(reader) for number in _read_numbers(reader, _count(reader))}
    # A later version may add to it.
    return Compared(records, failed, known, first, last, moved, computed, pruned, held)


def _check(compared: Compared) -> None:
    entries = len(compared.moved) + len(compared.computed) + len(compared.pruned)
    spans = sum(len(own.spans) for own in compared.held.values())
    if max(entries, spans) > limits.MAX_COMPARED // 16:
        raise InvalidArgument(
            f"Could not encode what was compared: expected at most {limits.MAX_COMPARED // 16} "
            f"entries, got {max(entries, spans)}. Record fewer weights."
        )


def _known_step(step: int | None) -> Iterable[int]:
    return [0] if step is None else [step + 1]


def _gaps(numbers: Iterable[int]) -> Iterator[int]:
    """Increasing numbers, as how many are left out before each."""
    last = -1
    for number in sorted(numbers):
        yield number - last - 1
        last = number


def _by_number(values: Mapping[int, int]) -> Iterable[int]:
    return [len(values), *_gaps(values), *(values[number] for number in sorted(values))]


def _step(reader: varint.Reader) -> int | None:
    step = reader.number(limits.MAX_STEP + 1)
    return step - 1 if step else None


def _count(reader: varint.Reader) -> int:
    # Each takes a byte at least.
    return reader.number(reader.left)


def _read_numbers(reader: varint.Reader, count: int) -> list[int]:
    numbers, last = [], -1
    for _ in range(count):
        last += 1 + reader.number(limits.MAX_STEP)
        numbers.append(last)
    return numbers


def _read_by_number(reader: varint.Reader) -> dict[int, int]:
    numbers = _read_numbers(reader, _count(reader))
    return {number: reader.number(limits.MAX_STEP) for number in numbers}


def _read_held(reader: varint.Reader) -> HeldValues:
    most, way = reader.number(limits.MAX_WEIGHTS), reader.number(len(WAYS) - 1)
    changed, changed_at = reader.number(limits.MAX_WEIGHTS), _step(reader)
    spans = []
    for _ in range(_count(reader)):
        first, last, records, comparisons = (reader.number() for _ in range(4))
        whole = reader.number(1) == 1
        if max(first, last, records) > limits.MAX_STEP or first > last or not records:
            raise varint.damaged("a span of records", f"{records} from step {first} to {last}")
        spans.append(HeldSpan(first, last, records, comparisons, whole))
    return HeldValues(most, WAYS[way], tuple(spans), changed, changed_at)
