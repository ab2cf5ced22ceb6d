"""Names of tags and of directories."""

import pytest

from tb_pastnet.errors import InvalidArgument
from tb_pastnet.format import tags


def test_directories_of_lineages():
    directory = tags.lineage_directory(12, 0xFF)
    assert directory == "pastnet.0012.000000ff"
    assert tags.parse_run(directory) == (".", 12, 255)
    assert tags.parse_run(f"a/b/{directory}") == ("a/b", 12, 255)
    assert tags.parse_run(f"with\nline/{directory}") == ("with\nline", 12, 255)


@pytest.mark.parametrize("run", ["", "a", "pastnet", "xpastnet.0001.00000000", "a/pastnet.1.0"])
def test_other_runs_are_not_ours(run):
    assert tags.parse_run(run) is None


def test_tags_of_channels():
    assert all(map(tags.is_channels, (tags.channels_tag("a/b"), tags.together_tag("a/b"))))
    assert not any(map(tags.is_channels, ("timeline", "together", "kept/channels/w")))


def test_tags_of_masks():
    assert tags.mask_of(tags.mask_tag("kept", "a/b")) == ("kept", "a/b")
    assert tags.mask_of(tags.mask_tag("trainable", "w")) == ("trainable", "w")
    for tag in ("kept", "masks", "channels/kept/w", tags.TAG_MASKS, tags.TAG_VIOLATIONS):
        assert tags.mask_of(tag) is None
    with pytest.raises(InvalidArgument, match="expected one of kept, trainable, got 'pruned'. Use"):
        tags.mask_tag("pruned", "w")
