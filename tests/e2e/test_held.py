"""Masks and violations in the page: pruned weights, the list, and what a channel says of both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tb_pastnet.core.violation import CAUSES
from tests.e2e.browser import clean
from tests.e2e.conftest import BROWSED, Tab, known, tensorboard, wait
from tests.e2e.held import HOSTILE, PRUNABLE, RECORDS, RUNS, held_story, pruned, violations


@pytest.fixture(scope="module", params=BROWSED)
def held(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """The story of masks, in each loader."""
    logdir = tmp_path_factory.mktemp("held") / "logs"
    held_story(logdir)
    with tensorboard(logdir, loader=request.param) as tab:
        wait(lambda: known(tab, RUNS, RECORDS), "all records")
        yield tab


@pytest.fixture(scope="module")
def audit(held: Tab) -> dict[str, Any]:
    """The list, walked through once."""
    found: dict[str, Any] = clean(held.drive("audit", variable="block/conv2/bias", channel=7))
    return found


def percent(part: int) -> str:
    """As the page writes the share of pruned weights."""
    return f"{100 * part / PRUNABLE:.1f}%" if part else "0%"


def test_pruned_weights_are_exact_in_heads_table_and_dots(held: Tab) -> None:
    steps = (5, 15, 25, 40)
    found = clean(held.drive("weights", steps=steps))
    assert [percent(pruned(step)) for step in steps] == ["0%", "13.7%", "54.7%", "65.0%"]
    for step in steps:
        seen, share = found[str(step)], percent(pruned(step))
        assert seen["heads"] == ["0%", share]
        assert seen["titles"][1] == f"{pruned(step)} of {PRUNABLE} prunable weights held at zero"
        assert f"calm 0%, ticket {share}" in seen["dots"]
        assert seen["titlesOfTable"][-1] == "Sparsity"
        assert seen["rows"][1][:2] == ["All layers", "ticket"]
        assert seen["rows"][1][-1] == f"{pruned(step)} ({share})"


def test_the_list_shows_the_violations_in_order(held: Tab, audit: dict[str, Any]) -> None:
    answer = held.json("violations", run="ticket")
    found = audit
    assert [url.partition("?")[2] for url in found["early"]] == ["run=ticket"]  # for its badge
    channels = {(one.variable.rpartition("/")[0], one.channel) for one in violations()}
    assert found["badges"] == [f"{len(channels)} violated in ticket"]
    assert found["badgesOfRows"] == ["17", "1", "15", "1"]
    rows = found["rows"]
    assert len(rows) == len(answer["violations"]) == len(violations())
    by_place = {(one.variable, one.channel): one for one in violations()}
    for row, entry in zip(rows, answer["violations"], strict=True):
        one = by_place[entry["variable"], entry["channel"]]
        assert row[:2] == [str(one.first_step), str(one.last_step)]
        assert "/".join(row[2:4]) == one.variable
        assert row[4] == str(one.channel)
        assert (row[5] == "not finite") == (entry["largest"] is None)
        assert row[6] == f"{one.elements} of {one.held}"
        assert row[7] == CAUSES.get(one.cause, "solar flare")
    assert [row[0] for row in rows] == sorted((row[0] for row in rows), key=int)
    assert HOSTILE in [row[2] for row in rows]  # a name is text
    assert found["sorts"] == ["ascending", *["none"] * 7]
    assert found["summary"][0].startswith(
        f"{len(channels)} channels of 3 layers changed while frozen or pruned, first at step 27."
    )
    assert found["largest"][:3] == ["not finite", "2", "0.5"]
    assert (found["closed"], found["keys"]) == ({"open": 0, "focus": "badge"}, 0)


def test_a_violation_opens_its_channel_and_back_opens_the_list(audit: dict[str, Any]) -> None:
    opened = audit["channel"]
    for part in ("v=layer", "l=block%2Fconv2", "w=block%2Fconv2%2Fbias", "c=7", "s=27"):
        assert f"p.pastnet.{part}" in opened["hash"]
    assert "p.pastnet.a=" not in opened["hash"]
    assert opened["titles"] == ["block/conv2", "Channel 7"]
    assert (opened["pill"], opened["open"]) == (["27"], 0)
    assert "p.pastnet.a=ticket" in audit["back"]
    assert audit["none"]["text"] == [" No violations: all frozen and pruned weights stayed put."]
    assert audit["dark"]["rows"] == len(violations())
    axe = [part["axe"] for part in (audit, opened, audit["none"], audit["dark"])]
    assert axe == [[]] * 4


def test_a_channel_shows_its_masks_and_its_violation(held: Tab) -> None:
    seen = clean(held.drive("masks", layer="conv1", run="ticket", channel=2, step=35))
    assert seen["flags"] == [
        "step 10: kept 40 of 72 weights",
        "step 30: kept 16 of 72 weights",
    ]
    assert seen["short"] == ["55.6% remaining", "22.2% remaining"]
    assert seen["density"] == [" not pruned 22% trainable 100%"]
    assert any("not pruned 22%, trainable 100%" in label for label in seen["labels"])
    [text] = seen["violation"]
    assert text.startswith("Held weights changedfrom step 33 to 40, by up to 1.3×10⁻³")
    assert text.endswith(", 3 of 7 held weightsLikely cause: weight decay")
    assert seen["marks"] == ["Channel 2 violated since step 33"]
    assert seen["axe"] == []
