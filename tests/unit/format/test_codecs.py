"""Each kind of messages has one codec, found by the tag."""

import pytest

from tb_pastnet.format import tags
from tb_pastnet.format.codecs import CODECS, codec_of
from tb_pastnet.format.envelope import Kind


def test_each_kind_has_a_codec_of_its_own():
    assert list(CODECS) == list(Kind)
    assert len({codec.decode for codec in CODECS.values()}) == len(Kind)


@pytest.mark.parametrize(
    ("tag", "kind"),
    [
        (tags.TAG_DESCRIPTION, Kind.DESCRIPTION),
        (tags.TAG_TIMELINE, Kind.TIMELINE),
        (tags.TAG_MASKS, Kind.MASKS),
        (tags.TAG_VIOLATIONS, Kind.VIOLATIONS),
        (tags.TAG_FUNCTION, Kind.FUNCTION),
        (tags.TAG_OVERHEAD, Kind.OVERHEAD),
        (tags.TAG_FOLLOWS, Kind.FOLLOWS),
        (tags.TAG_SKETCHES, Kind.SKETCHES),
        (tags.TAG_STANDING, Kind.STANDING),
        (tags.TAG_COMPARED, Kind.COMPARED),
        (tags.channels_tag("a/b"), Kind.CHANNELS),
        (tags.channels_tag(""), Kind.CHANNELS),
        (tags.mask_tag("kept", "a/b"), Kind.MASK),
        (tags.mask_tag("trainable", ""), Kind.MASK),
    ],
)
def test_tags_and_their_kinds(tag, kind):
    assert codec_of(tag) is CODECS[kind]


@pytest.mark.parametrize("tag", ["", "kept", "channels", "later/a", "masks/a", "Timeline"])
def test_tags_of_a_later_version(tag):
    assert codec_of(tag) is None
