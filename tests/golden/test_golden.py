"""Every released version of the record format stays readable, to the last bit."""

from dataclasses import asdict

import numpy as np
import pytest

from tb_pastnet.core.quantize import NAN
from tb_pastnet.core.statistics import NONFINITE, STATISTICS
from tb_pastnet.format.codecs import CODECS
from tb_pastnet.format.envelope import NEWEST, Kind, version_of
from tests.golden import contents
from tests.sealed import as_counts


def decoded(name, kind, *, tag, step=contents.LAST_STEP):
    """The content of each version of a file."""
    messages = contents.stored(name, kind)
    assert messages
    for version, message in messages:
        assert version_of(message) == version
        yield CODECS[kind].decode(message, tag=tag, step=step, lineage=contents.LINEAGE)


def alike(found, expected, *names):
    for name in names:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_channels():
    expected = contents.block()
    (now,) = decoded("channels_counts.bin", Kind.CHANNELS, tag=contents.CHANNELS)
    first, second = decoded("channels.bin", Kind.CHANNELS, tag=contents.CHANNELS)
    rounded = expected.codes.copy()
    rounded[NONFINITE] = as_counts(rounded[NONFINITE])
    for block, codes in (now, expected.codes), (first, rounded), (second, rounded):
        alike(block, expected, "sequence", "steps", "past_steps")
        np.testing.assert_array_equal(block.codes[:8], codes[:8])
        assert block.unknown == ()


def test_what_has_moved():
    (block,) = decoded("channels_moved.bin", Kind.CHANNELS, tag=contents.CHANNELS)
    alike(block, contents.moved(), "sequence", "steps", "past_steps", "codes")


@pytest.mark.parametrize("name", ["whole", "apart"])
def test_sketches(name):
    (found,) = decoded(f"sketches_{name}.bin", Kind.SKETCHES, tag="sketches")
    expected = contents.sketches(whole=name == "whole")
    alike(found, expected, "variables", "sequence", "steps", "whole")
    half = 0.5 * found.grid[..., None]
    known = np.isfinite(expected.values)
    np.testing.assert_array_equal(np.isfinite(found.values), known)
    assert (np.abs(found.values - expected.values) <= 1.001 * half)[known].all()


def test_channels_of_a_later_version():
    (block,) = decoded("channels_later.bin", Kind.CHANNELS, tag=contents.CHANNELS)
    expected = contents.later()
    assert block.unknown == ("größe", "number 42", "skewness")
    for row, name in enumerate(STATISTICS):
        codes = expected.get(name, np.full((16, 24), NAN))
        np.testing.assert_array_equal(block.codes[row], codes)


def test_timeline():
    expected = contents.timeline()
    first, second = decoded("timeline.bin", Kind.TIMELINE, tag="timeline")
    assert first.group_rates.shape == (0, 3)
    alike(second, expected, "group_rates")
    for line in first, second:
        alike(line, expected, "sequence", "steps", "wall_times", "learning_rates")
        alike(line, expected, "offered", "thinned", "dropped", "closed")
        assert line.notes == expected.notes


def test_description():
    for description in decoded("description.bin", Kind.DESCRIPTION, tag="description", step=10):
        assert asdict(description) == asdict(contents.description())


@pytest.mark.parametrize("coding", contents.MASK_STEPS)
def test_masks(coding):
    step = contents.MASK_STEPS[coding]
    for mask in decoded(f"mask_{coding}.bin", Kind.MASK, tag=contents.MASK, step=step):
        alike(mask, contents.masks()[coding], "bits", "number", "step", "elements")


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("masks", Kind.MASKS, contents.mask_log()),
        ("violations", Kind.VIOLATIONS, contents.violations()),
        ("overhead", Kind.OVERHEAD, contents.overhead()),
        ("standing", Kind.STANDING, contents.standing()),
        ("compared", Kind.COMPARED, contents.compared()),
    ],
)
def test_changes_violations_and_overhead(name, kind, expected):
    for content in decoded(f"{name}.bin", kind, tag=name):
        assert content == expected


@pytest.mark.parametrize("name", contents.DIGESTS)
def test_function_change(name):
    expected = contents.function_change(name)
    for change in decoded(f"{name}.bin", Kind.FUNCTION, tag="function"):
        assert (change.inputs, change.places) == (expected.inputs, expected.places)
        alike(change, expected, "sequence", "steps", "past_steps")
        # By bits: a zero has a sign, and NaN equals nothing.
        np.testing.assert_array_equal(change.values.view(np.int32), expected.values.view(np.int32))


def test_follows():
    expected = contents.follows()
    for follows in decoded("follows.bin", Kind.FOLLOWS, tag="follows"):
        assert follows.pairs == expected.pairs
        alike(follows, expected, "sequence", "steps", "past_steps")
        np.testing.assert_array_equal(follows.values, expected.values)


def test_each_version_of_each_kind_has_its_files():
    written = {contents.path(name, version_of(m)) for name, m in contents.messages().items()}
    assert written <= set(contents.files())
    messages = [path.read_bytes() for path in contents.files()]
    kinds = {(Kind(message[5]), version_of(message)) for message in messages}
    assert kinds == {(kind, v) for kind in Kind for v in range(1, NEWEST[kind] + 1)}
