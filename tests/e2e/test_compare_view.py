"""The Compare view: its numbers are those of the routes and of the masks themselves; addresses, errors, downloads."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from tests.e2e.browser import clean
from tests.e2e.compared import (
    COMMON,
    LAYERS,
    NAMES,
    OTHERS,
    RECORDS,
    RUNS,
    SAME,
    STATIONS,
    as_text,
    chosen,
    compared_story,
    of_pair,
    overlap,
    settings,
)
from tests.e2e.conftest import BROWSED, Tab, known, tensorboard, wait
from tests.e2e.texts import PICTURES


@pytest.fixture(scope="module", params=BROWSED)
def compared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tab]:
    """The runs, in each loader."""
    logdir = tmp_path_factory.mktemp("compared") / "logs"
    compared_story(logdir)
    with tensorboard(logdir, loader=request.param) as running:
        wait(lambda: known(running, RUNS, RECORDS), "all records")
        yield running


@pytest.fixture(scope="module")
def walked(compared: Tab) -> Any:
    """Every station, walked through once."""
    stations = [*STATIONS, *OTHERS.values()]
    return clean(compared.drive("compareNumbers", stations=stations, looked=1))


@pytest.fixture(scope="module")
def seen(walked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The stations whose numbers are counted anew."""
    return walked[: len(STATIONS)]


@pytest.fixture(scope="module")
def others(walked: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What the others show, by name."""
    return dict(zip(OTHERS, walked[len(STATIONS) :], strict=True))


STATION = pytest.mark.parametrize("at", range(len(STATIONS)))


@STATION
def test_the_matrix_shows_each_pair_and_its_value_by_chance(
    seen: list[dict[str, Any]], at: int
) -> None:
    found, (step, unit, mask) = seen[at], settings(at)
    for row, name in zip(found["cells"], NAMES, strict=True):
        assert row[0] == name
        for cell, other in zip(row[1:], NAMES, strict=True):
            if name == other:
                assert cell == "·"
            elif name in SAME and other in SAME:
                value, chance, *_ = of_pair(name, other, step, unit, mask)
                assert cell == as_text(value) + as_text(chance)
            else:
                assert cell == "different initialization"
    a, b = NAMES.index(STATIONS[at]["r"]), NAMES.index(STATIONS[at]["r2"])
    assert sorted(found["outlined"]) == sorted([[a, b], [b, a]])
    what = f"remaining {unit}"
    assert found["title"] == [
        f"IoU of {what if mask == 'kept' else f'trainable {unit}'}, step {step}"
    ]


@STATION
def test_the_table_of_pairs_has_all_numbers(
    compared: Tab, seen: list[dict[str, Any]], at: int
) -> None:
    step, unit, mask = settings(at)
    rows = {(row[0], row[1]): row[2:] for row in seen[at]["tables"]["pairs"]}
    assert len(rows) == RUNS * (RUNS - 1) // 2
    for (a, b), row in rows.items():
        if "seed" in (a, b):
            assert row[:4] == ["–"] * 4
            assert row[6] == "different initialization"
            continue
        value, chance, both, either = of_pair(a, b, step, unit, mask)
        layers = [layer for layer in LAYERS[a] if layer in LAYERS[b]]
        assert row[:4] == [as_text(value), as_text(chance), f"{both:,}", f"{either:,}"]
        unmatched = len(LAYERS[a]) + len(LAYERS[b]) - 2 * len(layers)
        assert row[4:] == [str(len(layers)), str(unmatched), ""]
    answer = compared.json("overlap", run=NAMES, step=step, unit=unit, mask=mask)
    assert [
        [as_text(pair["overlap"]), as_text(pair["chance"])]
        for pair in answer["pairs"]
        if pair["comparable"]
    ] == [row[:2] for row in rows.values() if row[0] != "–"]


@STATION
def test_layers_show_overlap_and_chance_at_the_cursor(seen: list[dict[str, Any]], at: int) -> None:
    found, (step, unit, mask) = seen[at], settings(at)
    a, b = STATIONS[at]["r"], STATIONS[at]["r2"]
    shown = dict(found["layers"])
    assert set(shown) == {*COMMON, "logits", "head"}
    table = {row[0]: row[1:] for row in found["tables"]["layers"]}
    for layer in COMMON:
        own, other = (chosen(run, layer, step, unit, mask) for run in (a, b))
        value, chance, both, _ = overlap(iter([(own, other)]))
        assert shown[layer] == f"{as_text(value)} / {as_text(chance)}"
        counts = [int(own.sum()), int(other.sum()), both, own.size]
        assert table[layer] == [as_text(value), as_text(chance), *map(str, counts), ""]
    assert (shown["logits"], shown["head"]) == ("only in ticket", "only in other")
    assert [cell == "–" for cell in table["head"][:6]] == [True] * 6
    assert found["on"] == [STATIONS[at].get("l", "conv1")]


@STATION
def test_the_sides_count_channels_that_remain(seen: list[dict[str, Any]], at: int) -> None:
    found, (step, unit, mask) = seen[at], settings(at)
    a, b = STATIONS[at]["r"], STATIONS[at]["r2"]
    layer = STATIONS[at].get("l", "conv1")
    own, other = (chosen(run, layer, step, "channels", mask) for run in (a, b))
    word = "remaining" if mask == "kept" else "trainable"
    value, chance, *_ = overlap(
        iter([(chosen(a, layer, step, unit, mask), chosen(b, layer, step, unit, mask))])
    )
    assert found["heads"] == [
        f"{own.sum()} of {own.size} {word}",
        f"{other.sum()} of {own.size} {word}",
        f"IoU {as_text(value)} · by chance {as_text(chance)}",
    ]
    counts = [
        (own & other).sum(),
        (own & ~other).sum(),
        (~own & other).sum(),
        (~own & ~other).sum(),
    ]
    gone = "pruned" if mask == "kept" else "held"
    names = [f"{word} in both", f"only {a}", f"only {b}", f"{gone} in both"]
    assert found["legend"] == [f"{name} {count}" for name, count in zip(names, counts, strict=True)]
    rows = {int(row[0]): row[1:3] for row in found["tables"]["channels"]}
    held = {"pruned"} if mask == "kept" else {"pruned", "frozen"}
    for channel in range(own.size):
        assert [state not in held for state in rows[channel]] == [own[channel], other[channel]]
    assert all(role == "img" and f"step {step}" in label for role, label in found["labels"])
    assert (
        ", ".join(f"{name} {count}" for name, count in zip(names, counts, strict=True))
        in (found["labels"][-1][1])
    )


@pytest.mark.parametrize("looked", [1, pytest.param(len(STATIONS), marks=pytest.mark.prove)])
def test_the_tables_are_accessible(compared: Tab, seen: list[dict[str, Any]], looked: int) -> None:
    """At one station: the tables of the others differ in numbers."""
    if looked > 1:
        seen = clean(compared.drive("compareNumbers", stations=STATIONS, looked=looked))
    assert [station["tables"]["axe"] for station in seen[:looked]] == [[]] * looked


def test_it_says_what_a_run_without_masks_means(others: dict[str, dict[str, Any]]) -> None:
    early, late = others["nothing pruned in either"], others["nothing pruned in one"]
    assert (
        "Nothing is pruned in dense, so the overlap is just the share remaining in ticket."
        in late["said"][0]
    )
    assert "Nothing is pruned in either" in early["said"][0]
    assert late["notes"] == []


def test_runs_of_other_origin_show_shares(others: dict[str, dict[str, Any]]) -> None:
    found = others["other origin"]
    assert found["titles"][1] == "Weights remaining by layer"
    shares = [chosen(run, "conv1", 30, "weights", "kept").mean() for run in ("ticket", "seed")]
    texts = [f"{100 * share:.0f}%" for share in shares]
    assert dict(found["layers"])["conv1"] == " | ".join(texts)
    assert dict(found["layers"])["logits"] == "100% | 100%"
    text = " ".join(found["apart"])
    assert "can't be matched one to one" in text
    assert "set_random_seed" in text
    points = 100 * (shares[1] - shares[0])
    assert f"{points:+.1f} pp".replace("-", "−") in text
    assert (found["legend"], len(found["heads"])) == ([], 3)
    row = {line[0]: line[1:] for line in found["tables"]["layers"]}["conv1"]
    assert row[:2] == ["–", "–"]
    assert row[2] == str(int(chosen("ticket", "conv1", 30, "weights", "kept").sum()))


def test_the_last_record_of_a_run_holds_on_where_it_has_ended(
    others: dict[str, dict[str, Any]],
) -> None:
    found = others["ended"]
    value, chance, both, either = of_pair("ticket", "other", 44, "weights", "kept")
    assert f"{as_text(value)}, by chance {as_text(chance)}." in found["said"][0]
    assert f"{both} of {either} remaining weights are in both." in found["said"][0]
    left, right = (chosen(run, "conv1", 44, "channels", "kept") for run in ("ticket", "other"))
    assert found["heads"][0] == f"{left.sum()} of {left.size} remaining"
    assert found["legend"][0] == f"remaining in both {(left & right).sum()}"
    assert "their Δ can't be compared" in found["notes"][0]  # of another past


def test_before_the_first_record_of_a_run_it_says_so(others: dict[str, dict[str, Any]]) -> None:
    found = others["not begun"]
    assert found["said"] == ["Not comparable: no record at this step (other)."]
    cell = found["cells"][NAMES.index("ticket")][1 + NAMES.index("other")]
    assert cell == "no record at this step"
    assert found["heads"][:2] == ["8 of 8 remaining", "no record yet"]


def test_clicks_keys_and_lists_choose_and_every_address_restores(compared: Tab) -> None:
    found = clean(compared.drive("compareWalk"))
    stations = {station["name"]: station for station in found["stations"]}
    assert [state["state"] for state in found["stations"]] == found["afresh"]
    pairs = {name: station["state"]["pair"] for name, station in stations.items()}
    overlaps = {two: of_pair(*two, 40, "weights", "kept")[0] for two in combinations(SAME, 2)}
    assert set(pairs["start"]) == set(min(overlaps, key=lambda two: overlaps[two]))
    assert pairs["cell"] == ["seed", "other"]
    assert pairs["previous A"] == ["dense", "other"]
    assert pairs["next B"] == ["dense", "seed"]
    assert pairs["list"] == ["ticket", "seed"]
    keyed = stations["layer and step by keys"]["state"]
    assert (keyed["on"], set(keyed["pills"])) == (["block/conv2"], {"3"})
    clicked = stations["clicked the first layer"]["state"]
    assert clicked["on"] == ["conv1"]
    assert int(clicked["pills"][0]) > 20
    assert found["hovered"]["tip"][0] == "block/conv2"
    assert len(set(found["hovered"]["pills"])) == 1
    last = stations["channels, trainable, deltas"]
    assert {"Channels", "Trainable", "Δ"} <= set(last["state"]["pressed"])
    assert found["spoken"][0].startswith("Step ")
    assert "ticket and seed different initialization" in found["spoken"][0]
    assert found["opened"]["titles"] == ["conv1"]
    assert "p.pastnet.r=ticket" in found["opened"]["hash"]
    assert found["back"] == found["stations"][-1]["hash"]


def test_both_themes_are_accessible_without_eval(compared: Tab) -> None:
    found = clean(compared.drive("compareLook"))
    assert {name: one["axe"] for name, one in found.items()} == {name: [] for name in found}
    for name, one in found.items():
        assert len(one["colours"]) == (4 if name.startswith("other") else 3)
        assert min(one["colours"]) > 1


def test_fewer_than_two_runs_say_what_to_do(compared: Tab) -> None:
    one, none = clean(
        compared.drive("compareFew", hidden=["ticket,other,seed", "dense,ticket,other,seed"])
    )
    assert "only one is selected. Tick another run on the left" in one["text"][0]
    assert "none is selected" in none["text"][0]
    assert (one["axe"], none["axe"]) == ([], [])


def test_an_error_leaves_the_other_panels_and_retry_mends_it(compared: Tab) -> None:
    found = clean(compared.drive("compareFails", routes=["overlap", "overlap_layers", "layer"]))
    alert = "Could not read a mask. <b>Try</b> again."
    before = {route: one["before"] for route, one in found.items()}
    assert before["overlap"] == {"alerts": [alert], "matrix": 0, "layers": 4, "sides": 3}
    assert before["overlap_layers"] == {"alerts": [alert], "matrix": 1, "layers": 0, "sides": 3}
    assert before["layer"] == {"alerts": [alert] * 2, "matrix": 1, "layers": 4, "sides": 0}
    for one in found.values():
        assert one["after"] == {"alerts": [], "matrix": 1, "layers": 4, "sides": 3}


def test_downloads_are_of_the_view(compared: Tab) -> None:
    found = clean(compared.drive("compareTake"))
    assert found["png"]["data"] == "\x89PNG\r\n\x1a\n"
    assert found["png"]["name"] == "pastnet-Compare_ticket_and_other.png"
    assert found["png"]["menu"][:3] == PICTURES
    assert len(found["png"]["menu"]) == 6
    pairs = list(csv.DictReader(io.StringIO(found["pairs"]["data"])))
    assert len(pairs) == RUNS * (RUNS - 1) // 2
    for row in pairs:
        if row["reason"]:
            assert row["overlap"] == ""
            continue
        value, chance, both, either = of_pair(row["run"], row["other"], 30, "weights", "kept")
        assert np.allclose([float(row["overlap"]), float(row["chance"])], [value, chance])
        assert [int(row["intersection"]), int(row["union"])] == [both, either]
    layers = list(csv.DictReader(io.StringIO(found["layers"]["data"])))
    assert [row["layer"] for row in layers] == list(COMMON)
    for row in layers:
        assert row["step"] == "30"
        own, other = (
            chosen(run, row["layer"], 30, "weights", "kept") for run in ("ticket", "other")
        )
        value, chance, both, _ = overlap(iter([(own, other)]))
        assert np.allclose([float(row["overlap"]), float(row["chance"])], [value, chance])
        assert [
            int(row["kept"]),
            int(row["other_kept"]),
            int(row["both"]),
            int(row["elements"]),
        ] == [
            own.sum(),
            other.sum(),
            both,
            own.size,
        ]
    assert found["run"]["data"].startswith("run,step,")
