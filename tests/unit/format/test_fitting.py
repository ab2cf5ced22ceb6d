"""What the writer leaves out is what a reader would refuse, and no more."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace

import numpy as np
import pytest

from tb_pastnet.core.axes import explicit_axis
from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.core.violation import Violation
from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format import limits
from tb_pastnet.format.codecs import codec_of
from tb_pastnet.format.description import Description, VariableEntry, encode_description
from tb_pastnet.format.fitting import Room, group_names, shown
from tb_pastnet.format.function_change import Input, Place, check_places
from tb_pastnet.format.timeline import Timeline, decode_timeline, encode_timeline
from tb_pastnet.record.batch import Batch, Record, Span
from tb_pastnet.record.changes import Change, Changes, MaskUpdate
from tb_pastnet.record.weight import Network, Weight

ENTRY = VariableEntry("a/k", "a", "k", "kernel", (2, 3), "float32", "-1", True, 3, 2)
PLACE = {"tag": "description", "step": 3}


class Plain(Weight):
    def read(self):
        return np.ones(self.shape, np.float32)


def described(network, **more):
    """The description of a network, through the encoder and the decoder."""
    given = {
        "layers": network.layers,
        "variables": tuple(weight.text for weight in network.weights),
        "skipped": network.skipped,
        "together": network.together,
    }
    description = Description(5, 1, "9c", 1, "previous", 1, 1.0, {}, **{**given, **more})
    message = encode_description(description, **PLACE)
    return codec_of("description").decode(message, **PLACE, lineage=5)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"id": "x" * limits.MAX_NAME}, None),
        ({"id": "x" * (limits.MAX_NAME + 1)}, "its name takes 16,385 bytes, more than 16,384"),
        ({"id": "é" * 8193}, "its name takes 16,386 bytes"),
        ({"layer": "\ud83d/a"}, "its name isn't Unicode"),
        ({"dtype": "\udc00"}, "its name isn't Unicode"),
        ({"channels": limits.MAX_CHANNELS}, None),
        ({"channels": limits.MAX_CHANNELS + 1}, "it has 8,388,609 channels, more than 8,388,608"),
    ],
)
def test_what_a_reader_refuses_has_a_reason(change, reason):
    own = Room().refusal(replace(ENTRY, **change), "Dense")
    assert own is None if reason is None else own.startswith(reason)


@pytest.mark.parametrize(
    "name", ["w{:05d}", "block_{0}/attention/query_{0}/kernel", "\1" * 900 + "{}"]
)
@pytest.mark.parametrize("in_layer", [1, 3])
def test_a_full_description_is_readable_and_nearly_full(name, in_layer, monkeypatch):
    monkeypatch.setattr(limits, "MAX_JSON", 1 << 19)
    monkeypatch.setattr(limits, "MAX_GROUPS", 100)
    count = 5000
    axis = explicit_axis(-1, (8, 128), "w")
    weights = [
        Plain(
            name.format(n),
            (8, 128),
            "float32",
            axis,
            layer=name.format(n // in_layer),
            kind="Dense",
        )
        for n in range(count)
    ]
    network = Network.of(weights)
    assert 0 < len(network.weights) < count
    back = described(network, groups=group_names(["\U0001f600" * 99 + str(n) for n in range(5000)]))
    assert len(back.variables) == len(network.weights)
    reasons = [reason for _, reason in back.skipped]
    assert all("no room" in reason for reason in reasons)
    assert len(dict(back.skipped)) == len(back.skipped)
    more = re.fullmatch(r"… ([\d,]+) more", back.skipped[-1][0])
    listed = len(back.skipped) - 1 + int(more[1].replace(",", ""))
    assert listed == count - len(network.weights)
    entries = [asdict(each) for each in (*back.layers, *back.variables)] + [back.together]
    assert len(json.dumps(entries, separators=(",", ":"))) > 0.8 * limits.MAX_JSON


def test_names_that_are_cut_stay_apart():
    names = ["x" * 20_000 + end for end in ("a", "b")] + ["\ud800", "\udc00", "\\ud800"]
    cut = [shown(name) for name in names]
    assert len(set(cut)) == len(names)
    assert cut[4] == "\\ud800"
    assert all(len(name) < 300 and name.encode() for name in cut)


def test_the_last_of_two_equal_names_is_skipped_and_all_of_none_is_an_error():
    axis = explicit_axis(-1, (2,), "w")
    network = Network.of([Plain("a/w", (2,), "float32", axis) for _ in range(2)])
    assert network.skipped == (("a/w", "another one has its name"),)
    assert len(network.weights) == 1
    with pytest.raises(InvalidArgument, match=r"got none of 1 \('.*: its name isn't Unicode"):
        Network.of([Plain("\ud800", (2,), "float32", axis)])


@pytest.mark.parametrize(
    "change",
    [
        {"every": limits.MAX_STEP + 1},
        {"origin": "x" * (limits.MAX_NAME + 1)},
        {"created": float("inf")},
        {"groups": ("x" * (limits.MAX_NAME + 1),)},
        {"variables": (replace(ENTRY, channels=limits.MAX_CHANNELS + 1),)},
    ],
)
def test_no_encoder_packs_what_its_decoder_refuses(change):
    description = Description(5, 1, "9c", 1, "previous", 1, 1.0)
    encode_description(description, **PLACE)
    with pytest.raises(InvalidArgument, match="Could not encode a complete description"):
        encode_description(replace(description, **change), **PLACE)


@pytest.mark.parametrize(
    ("inputs", "places"),
    [
        ([Input("x" * 20_000, (2,), "float32")], []),
        ([Input("", (2,) * 257, "float32")], []),
        ([Input("", (2,), "float32")] * 257, []),
        ([], [Place("layer", str(n), 1) for n in range((1 << 16) + 1)]),
        ([], [Place("layer", "\1" * 9000 + str(n), 1) for n in range(400)]),
        ([], [Place("layer", "a", 1)] * 2),
    ],
)
def test_a_probe_that_no_reader_takes_is_refused(inputs, places):
    check_places([Input("x", (2,), "float32")], [Place("layer", "a", 1)])
    with pytest.raises(InvalidArgument, match="Could not encode"):
        check_places(inputs, places)


def test_notes_are_cut_and_their_counts_add_up():
    notes = {"x" * 30_000 + str(n): 2 for n in range(3)} | {f"note {n}": 1 for n in range(5000)}
    message = encode_timeline(Timeline(notes=notes), tag="timeline", step=1, lineage=1)
    back = decode_timeline(message, tag="timeline", step=1, lineage=1).notes
    assert len(back) <= limits.MAX_RECORDS
    assert back["x" * 1999 + "…"] == 6
    assert sum(back.values()) == sum(notes.values())


class Outputs:
    inputs = ()
    places = tuple(Place("layer", str(n), 1) for n in range(1000))


def test_records_that_waited_long_are_readable(monkeypatch):
    """More than a message may hold, as between two objects of a store; with too many groups."""
    count, groups = limits.MAX_RECORDS + 900, limits.MAX_GROUPS + 1
    monkeypatch.setattr("tb_pastnet.core.thinning.CAPACITY", 1 << 20)
    batch = Batch([Span("w", 0, 1, True)], 7, probe=Outputs)
    outputs = np.zeros((4, len(Outputs.places)), np.float32)
    values = np.ones((len(STATISTICS), 1))
    rates = np.zeros(groups)
    for number in range(count):
        # Zeros that come and go are never thinned.
        values[0] = number % 2
        batch.add(Record(number, number + 1, number, 5.0, 0.1, values.copy(), outputs, 0, rates))
    decoded = [
        (
            message.tag,
            codec_of(message.tag).decode(
                message.payload, tag=message.tag, step=message.step, lineage=7
            ),
        )
        for message in batch.pack(closed=True, notes={"a": 1}).messages
    ]
    for tag in ("timeline", "function", "channels/w"):
        own = [each.sequence for kind, each in decoded if kind == tag]
        assert np.concatenate(own).tolist() == list(range(count)), tag
    lines = [each for kind, each in decoded if kind == "timeline"]
    assert [(line.offered, line.closed, line.notes) for line in lines] == [
        (0, False, {}),
        (count, True, {"a": 1}),
    ]
    assert {len(line.group_rates) for line in lines} == {limits.MAX_GROUPS}


def test_masks_and_violations_of_long_names_are_readable():
    changes = Changes(7)
    names = ["\1" * 16_000 + str(n) for n in range(400)]
    bits = np.array([0], np.uint8)
    changes.add(Change(1, masks=tuple(MaskUpdate(name, "kept", bits, 3, 0) for name in names)))
    held = tuple(Violation(name, 0, 1, 1, 1, 1, 0.5, "unknown") for name in names)
    changes.add(Change(1, violations=held))
    messages = changes.pack()
    for tag in ("masks", "violations"):
        own = [message for message in messages if message.tag == tag]
        assert np.all(np.diff([message.step for message in own]) > 0)
        decoded = [
            entry
            for message in own
            for entry in codec_of(tag).decode(
                message.payload, tag=tag, step=message.step, lineage=7
            )
        ]
        assert [entry.variable for entry in decoded] == names
