"""Pins, differences to the baseline, orders and boxes of rows, in a real browser."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.e2e.browser import clean
from tests.e2e.conftest import Tab
from tests.e2e.stories import LAYERS, RUNS, in_row
from tests.e2e.texts import total_of

LAYER, STEP, CHANNEL = "block/conv2", 30, 1
STATES = ("no data", "moving", "reactivated", "quiet", "frozen", "pruned")
MOVING, REACTIVATED = 1, 2


def test_channels_are_pinned_by_key_and_button_and_stay_with_their_layer(tab: Tab) -> None:
    found = clean(tab.drive("pins", layer=LAYER, run="dense"))
    assert found["two"]["pinned"] == ["#0", "#2"]
    assert "p.pastnet.p=0~2" in found["two"]["hash"]
    assert "Channel 2 pinned" in found["two"]["said"]
    said = [f"dense, pinned channel {pin} at step 40: moving" for pin in (0, 2)]
    assert found["pictures"] == [". ".join(said)]
    assert (found["selected"], found["button"]) == (["Channel 0"], "true")
    assert found["one"] == ["#0"]
    assert found["most"] == [f"#{pin}" for pin in range(2, 8)]  # the first two gave way
    assert found["gone"] == "Channel 7 pinned, channel 1 unpinned (limit 6)"
    assert found["afresh"] == found["most"]
    assert found["elsewhere"] == []
    assert found["axe"] == []


def moving_share(run: str) -> float:
    """Share of channels that move at the step, as it was written."""
    counts = in_row(run, "All layers", STEP)
    return counts["moving"] / total_of(counts)


def points(own: float, base: float) -> str:
    """A difference of shares as the page writes it."""
    difference = 100 * (own - base)
    return (
        "the same"
        if difference == 0
        else f"{'−' if difference < 0 else '+'}{abs(difference):.1f} pp"
    )


@pytest.fixture(scope="module")
def differences(tab: Tab) -> dict[str, Any]:
    found: dict[str, Any] = clean(
        tab.drive("differences", step=STEP, layer=LAYER, channel=CHANNEL, foreign="pruned")
    )
    return found


def test_the_network_shows_differences_to_the_baseline(differences: dict[str, Any]) -> None:
    shares = {run: moving_share(run) for run in RUNS}
    assert len(set(shares.values())) == 4
    found = differences["network"]
    assert not any(" vs " in label for label in differences["before"])
    for run, label in zip(shares, found["strips"], strict=True):
        text = f"still moving {points(shares[run], shares['dense'])} vs dense"
        assert (text in label) == (run != "dense")
    assert found["heads"][1:] == [
        f"{points(shares[run], shares['dense'])} still moving"
        for run in ("frozen", "leaky", "pruned")
    ]
    assert f"frozen {points(shares['frozen'], shares['dense'])}" in found["dots"][0]
    assert found["scale"][0].startswith("Still moving vs dense")
    assert found["pressed"] == ["Network", "vs baseline"]
    assert "p.pastnet.vs=1" in found["hash"]
    assert found["axe"] == []
    table = {(row[0], row[1]): row[-1] for row in differences["table"]}
    assert table["All layers", "frozen"] == points(shares["frozen"], shares["dense"])
    other = differences["other"]
    assert other["tags"] == ["Baseline: leaky"]
    assert f"{points(shares['dense'], shares['leaky'])} vs leaky" in other["strips"][0]


def test_a_layer_shows_differences_channel_by_channel_for_one_origin_alone(
    tab: Tab, differences: dict[str, Any]
) -> None:
    _, own = tab.arrays("layer", run="dense", layer=LAYER)
    _, base = tab.arrays("layer", run="leaky", layer=LAYER)
    at, there = (list(arrays["steps"]).index(STEP) for arrays in (own, base))
    state, other = own["state"][:, at] & 7, base["state"][:, there] & 7
    delta, past = own["delta"][:, at], base["delta"][:, there]
    trains, trained = (np.isin(one, (MOVING, REACTIVATED)) for one in (state, other))
    differs = (state != other) & ~(trains & trained)
    more, less = (~differs & trains & side for side in (delta > past, delta < past))
    alike = ~differs & ~more & ~less
    assert (
        f"Vs leaky: {differs.sum()} channels in another state, {more.sum()} move more, "
        f"{less.sum()} less, {alike.sum()} the same" in differences["layer"]["label"]
    )
    assert differs.any()
    by_channel = {int(row[0]): row[-3:] for row in differences["channels"]}
    for channel, row in by_channel.items():
        assert row[0] == STATES[other[channel]]
        zero = min(delta[channel], past[channel]) == 0
        more = delta[channel] > past[channel]
        same = delta[channel] == past[channel]
        assert row[2][0] == ("–" if zero else "t" if same else "×" if more else "÷")
    foreign = differences["foreign"]
    assert foreign["notes"] == [
        (
            "pruned and leaky started from different weights: these are the values of pruned, "
            "not differences channel by channel."
        )
    ]
    assert "Vs " not in foreign["label"]
    assert (differences["layer"]["axe"], differences["dark"]) == ([], [])


def test_a_drag_zooms_to_a_box_of_steps_and_rows(tab: Tab) -> None:
    found = clean(tab.drive("boxes", layer=LAYER, run="dense"))
    both = found["both"]
    assert "p.pastnet.zr=4~12" in both["hash"]  # of 16 rows
    first, last = (
        int(part) for part in both["hash"].split("p.pastnet.z=")[1].split("&")[0].split("~")
    )
    assert (first, last) == (16, 47)  # of steps 1 to 62: runs share the axis
    assert both["shown"] == 1
    assert both["numbers"] == [str(channel) for channel in range(4, 12)]
    assert both["chip"] == [f"Steps {first} to {last}, rows 5 to 12 "]
    assert "p.pastnet.s=" not in both["hash"]  # a drag is no click
    assert found["walked"] == ["Channel 5"]  # keys stay in the box
    assert found["again"]["numbers"] == ["4", "5", "6", "7"]
    assert "p.pastnet.z" not in found["reset"]["hash"]
    assert found["reset"]["numbers"] == [str(channel) for channel in range(16)]
    assert found["down"]["chip"] == ["Rows 5 to 16 "]
    assert "p.pastnet.z=" not in found["down"]["hash"]
    assert "p.pastnet.zr=" not in found["along"]["hash"]
    assert "p.pastnet.z=" in found["along"]["hash"]


def test_rows_take_the_order_of_another_run_and_thumbnails_tell_the_overlap(tab: Tab) -> None:
    others = ("leaky", "pruned")
    found = clean(tab.drive("orders", layer=LAYER, run="frozen", others=others, step=STEP))
    for other in others:
        _, arrays = tab.arrays("layer", run=other, layer=LAYER)
        held = np.isin(arrays["state"] & 7, (4, 5))
        first = np.where(held.any(axis=1), held.argmax(axis=1), held.shape[1])
        assert found["rows"][other] == np.argsort(first, kind="stable").tolist()
    assert found["rows"]["leaky"] != found["rows"]["pruned"] != list(range(LAYERS[LAYER]))
    assert found["notes"]["leaky"] == []
    assert found["notes"]["pruned"] == [
        "pruned started from different weights: the order of rows means nothing for frozen."
    ]
    assert "p.pastnet.of=pruned" in found["hash"]
    # Nothing is pruned in those of one origin, and the other one's channels are others.
    assert not any("IoU" in thumb["text"] for thumb in found["thumbs"].values())
