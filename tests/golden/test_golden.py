"""Every released version of the record format stays readable, to the last bit."""

from dataclasses import asdict

import numpy as np
import pytest

from tb_pastnet.format.block import decode_block
from tb_pastnet.format.description import decode_description
from tb_pastnet.format.envelope import VERSION
from tb_pastnet.format.function_change import decode_function_change
from tb_pastnet.format.mask_bits import decode_mask
from tb_pastnet.format.mask_log import decode_mask_log
from tb_pastnet.format.overhead import decode_overhead
from tb_pastnet.format.timeline import decode_timeline
from tb_pastnet.format.violations import decode_violations
from tests.golden import contents

VERSIONS = range(1, VERSION + 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_channels(version):
    message = (contents.folder(version) / "channels.bin").read_bytes()
    found = decode_block(
        message, tag=contents.CHANNELS, step=contents.LAST_STEP, lineage=contents.LINEAGE
    )
    expected = contents.block()
    for name in ("sequence", "steps", "past_steps", "codes"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@pytest.mark.parametrize("version", VERSIONS)
def test_timeline(version):
    message = (contents.folder(version) / "timeline.bin").read_bytes()
    found = decode_timeline(
        message, tag="timeline", step=contents.LAST_STEP, lineage=contents.LINEAGE
    )
    expected = contents.timeline()
    for name in ("sequence", "steps", "wall_times", "learning_rates"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    scalars = ("offered", "thinned", "dropped", "closed", "notes")
    assert [getattr(found, n) for n in scalars] == [getattr(expected, n) for n in scalars]


@pytest.mark.parametrize("version", VERSIONS)
def test_description(version):
    message = (contents.folder(version) / "description.bin").read_bytes()
    found = decode_description(message, tag="description", step=10, lineage=contents.LINEAGE)
    assert asdict(found) == asdict(contents.description())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("coding", contents.MASK_STEPS)
def test_masks(version, coding):
    message = (contents.folder(version) / f"mask_{coding}.bin").read_bytes()
    found = decode_mask(
        message, tag=contents.MASK, step=contents.MASK_STEPS[coding], lineage=contents.LINEAGE
    )
    expected = contents.masks()[coding]
    np.testing.assert_array_equal(found.bits, expected.bits)
    scalars = ("number", "step", "elements")
    assert [getattr(found, n) for n in scalars] == [getattr(expected, n) for n in scalars]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("name", "decode", "expected"),
    [
        ("masks", decode_mask_log, contents.mask_log()),
        ("violations", decode_violations, contents.violations()),
        ("overhead", decode_overhead, contents.overhead()),
    ],
)
def test_changes_violations_and_overhead(version, name, decode, expected):
    message = (contents.folder(version) / f"{name}.bin").read_bytes()
    assert decode(message, tag=name, step=contents.LAST_STEP, lineage=contents.LINEAGE) == expected


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", contents.DIGESTS)
def test_function_change(version, name):
    message = (contents.folder(version) / f"{name}.bin").read_bytes()
    found = decode_function_change(
        message, tag="function", step=contents.LAST_STEP, lineage=contents.LINEAGE
    )
    expected = contents.function_change(name)
    assert (found.inputs, found.places) == (expected.inputs, expected.places)
    for name in ("sequence", "steps", "past_steps"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    # By bits: a zero has a sign, and NaN equals nothing.
    np.testing.assert_array_equal(found.values.view(np.int32), expected.values.view(np.int32))


def test_each_version_has_its_files():
    names = {path.name for path in contents.folder().iterdir()}
    assert names == set(contents.messages())
