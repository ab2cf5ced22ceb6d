"""A log that a later tb_pastnet wrote into, or something else did: what is understood is shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.format.block import Block, encode_block
from tb_pastnet.format.tags import (
    TAG_COMPARED,
    TAG_DESCRIPTION,
    TAG_FOLLOWS,
    TAG_FUNCTION,
    TAG_MASKS,
    TAG_OVERHEAD,
    TAG_SKETCHES,
    TAG_STANDING,
    TAG_TIMELINE,
    TAG_VIOLATIONS,
    channels_tag,
    mask_tag,
)
from tests import event_files as files
from tests.both_loaders import everything, in_both, the_run
from tests.sealed import block_payload
from tests.sealed import sealed as sealed_as
from tests.tensorboards import Board

pytestmark = pytest.mark.promise("foreign_and_future")

LINEAGE = 0x3F9A2C1B
KERNEL = channels_tag("conv1/kernel")
TAGS = (KERNEL, TAG_TIMELINE, TAG_DESCRIPTION, TAG_MASKS, TAG_VIOLATIONS, TAG_FUNCTION,
        TAG_OVERHEAD, TAG_FOLLOWS, TAG_SKETCHES, TAG_STANDING, TAG_COMPARED,
        mask_tag("kept", "conv1/kernel"))  # fmt: skip


def sealed(version: int, kind: int, tag: str, step: int, payload: bytes) -> bytes:
    """A message of this lineage."""
    return sealed_as(payload, version=version, kind=kind, tag=tag, step=step, lineage=LINEAGE)


def written(logdir: Path, tag: str, message: Callable[[int], bytes]) -> None:
    """A run with one strange message between its records."""
    writer = files.LineageWriter(logdir, lineage=LINEAGE)
    writer.describe(0)
    writer.records(range(1, 17))
    writer.put(tag, 17, message(17))
    writer.records(range(18, 34))


def look(here: Board) -> tuple[Any, Any, list[float]]:
    header, arrays = here.arrays("/layer", run="a", layer="conv1")
    return the_run(here), header, arrays["steps"].tolist()


@pytest.mark.parametrize("tag", TAGS)
def test_a_record_of_a_future_version_costs_itself_alone(tmp_path: Path, tag: str) -> None:
    written(tmp_path, tag, lambda step: sealed(3, 1, tag, step, b"what nobody knows yet"))
    run, header, steps = in_both(tmp_path, look)
    assert steps == [*range(1, 17), *range(18, 34)]
    told = [*run["notes"], *header["notes"]]
    if tag in (KERNEL, TAG_TIMELINE):
        account = header["account"] if tag == KERNEL else run["account"]
        assert (account["shown"], account["unreadable"]) == (32, 1)
    of_their_own = TAG_FUNCTION, TAG_FOLLOWS, TAG_SKETCHES, TAG_STANDING
    if tag not in (mask_tag("kept", "conv1/kernel"), *of_their_own):
        assert any("newer format" in one["text"] for one in told), told


@pytest.mark.parametrize("tag", ["gradients/conv1/kernel", "later", "kept", "channels", "x" * 999])
def test_tags_of_a_later_version_are_passed_over(tmp_path: Path, tag: str) -> None:
    written(tmp_path, tag, lambda step: sealed(1, 42, tag, step, b"later"))
    run, header, steps = in_both(tmp_path, look)
    assert steps == [*range(1, 17), *range(18, 34)]
    assert (run["account"]["unreadable"], header["account"]["unreadable"]) == (0, 0)
    assert run["notes"] == header["notes"] == []


@pytest.mark.parametrize("kind", [0, 2, 8, 255])
def test_another_kind_than_the_tag_holds_is_unreadable(tmp_path: Path, kind: int) -> None:
    written(tmp_path, KERNEL, lambda step: sealed(1, kind, KERNEL, step, b"later"))
    _, header, steps = in_both(tmp_path, look)
    assert steps == [*range(1, 17), *range(18, 34)]
    assert header["account"]["unreadable"] == 1


def test_a_run_of_a_future_version_leaves_the_others_alone(
    tmp_path: Path, figure: Callable[..., None]
) -> None:
    files.write_run(tmp_path, "now", lineage=1)
    later = files.LineageWriter(tmp_path, "later", lineage=LINEAGE)
    for tag in TAGS:
        later.put(tag, 5, sealed(3, 3, tag, 5, b"{}"))

    def names(here: Board) -> tuple[Any, Any]:
        runs = {run["name"]: run for run in here.json("/index")["runs"]}
        return runs, everything(here, "now")

    runs, _ = in_both(tmp_path, names)
    assert runs["now"]["records"] == 40
    assert runs["now"]["notes"] == []
    assert runs["later"]["records"] == 0
    assert "newer format" in runs["later"]["notes"][0]["text"]
    figure(f"a future version under each of {len(TAGS)} tags: the others shown, in both loaders")


def test_statistics_of_a_later_version_are_passed_over_and_missing_ones_are_no_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = files.LineageWriter(tmp_path, lineage=LINEAGE)
    writer.describe(0)
    writer.records(range(1, 17))

    def of_a_later_version(block: Block, *, tag: str, lineage: int) -> bytes:
        if tag != KERNEL:
            return encode_block(block, tag=tag, lineage=lineage)
        codes = dict(zip(STATISTICS, block.codes, strict=True))
        del codes["kept"], codes["nonfinite"]
        codes = {"skewness": codes["norm"], **codes, "number 99": codes["norm"]}
        payload = block_payload(codes, 2, first=int(block.sequence[0]))
        return sealed(2, 1, tag, int(block.steps[-1]), payload)

    monkeypatch.setattr(files, "encode_block", of_a_later_version)
    writer.records(range(17, 33))
    run, header, steps = in_both(tmp_path, look)
    assert steps == [*range(1, 33)]
    counts = [
        note["count"] for note in header["notes"] if "unknown to this version" in note["text"]
    ]
    assert counts == [16]
    assert (run["account"]["unreadable"], header["account"]["unreadable"]) == (0, 0)

    def channel(here: Board) -> Any:
        return here.json("/channel", run="a", layer="conv1", channel=0)

    rows = in_both(tmp_path, channel)
    assert rows["steps"] == [*range(1, 33)]
    assert None not in rows["norm"] + rows["past_norm"] + rows["trainable"] + rows["kept"][:16]
    assert rows["kept"][16:] == rows["nonfinite"][16:] == [None] * 16
