"""The Function view in the page: its numbers are those of the route and of the records, its address restores it."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import probed
from tests.e2e.browser import BROWSER, clean
from tests.e2e.conftest import BROWSED, Tab, known, tensorboard, wait
from tests.e2e.probe_story import (
    BARE,
    FROZEN_FROM,
    HOSTILE,
    INFINITE,
    LACKS,
    LAYERS,
    PLACES,
    RECORDS,
    RUNS,
    STEPS,
    change,
    probe_story,
    values,
    weights,
)
from tests.e2e.texts import PICTURES
from tests.event_files import LineageWriter

MEASURES = ("relative", "cosine", "divergence", "decisions")
NAMES = [one.name if one.kind == "layer" else f"output {one.name}" for one in PLACES]
EXPONENTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@pytest.fixture(scope="module", params=BROWSED)
def tab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """The story of probes, in each loader."""
    logdir = tmp_path_factory.mktemp("probed") / "logs"
    probe_story(logdir)
    with tensorboard(logdir, loader=request.param) as running:
        wait(lambda: known(running, RUNS, RECORDS), "all records")
        yield running


def as_text(value: float, measure: str = "relative") -> str:
    """A number as the page writes it."""
    if np.isnan(value):
        return "–"
    if measure == "decisions":
        percent = Decimal(100 * value).quantize(Decimal("0.1"), ROUND_HALF_UP)
        return f"{percent}%" if value else "0%"
    if value == 0 or np.isinf(value):
        return "0" if value == 0 else "∞"
    if 0.01 <= value < 10_000:
        return f"{float(f'{value:.3g}'):g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    power = f"10{str(int(exponent)).translate(EXPONENTS)}"
    return power if mantissa == "1.0" else f"{mantissa}×{power}"


def recorded(run: str, place: int, measure: str, step: int) -> float:
    """What a run recorded last at or before a step, as the page takes it."""
    steps = np.asarray(STEPS[run])
    if step < steps[0] or step >= steps[-1] + steps[-1] - steps[-2]:
        return np.nan
    record = int((steps <= step).sum()) - 1
    value = float(values(run, STEPS[run])[MEASURES.index(measure), record, place])
    return 1 - value if measure == "cosine" else value


def moved(run: str, layer: str, step: int) -> str:
    """The mean relative delta of a layer's moving channels, counted from the codes that were written."""
    if run == "freezing" and step >= FROZEN_FROM.get(layer, 99):
        return "frozen"
    _, past, delta, *_ = weights(run)[f"{layer}/kernel"][:, list(STEPS[run]).index(step)].astype(
        float
    )
    return as_text(float(np.mean(2.0 ** ((delta - past) / 16))))


STATIONS = [
    {"s": 5, "r": "calm"},
    {"s": LACKS, "r": "calm", "pl": "layer/conv1"},
    {"s": INFINITE, "r": "calm", "pl": "layer/conv1"},
    {"s": 35, "r": "freezing"},
    {"s": 40, "r": "freezing", "fm": "cosine", "pl": "output/conv1"},
    {"s": 4, "r": "epochs", "fm": "divergence"},
    {"s": 2, "r": "calm", "fm": "decisions"},
]


@pytest.fixture(scope="module")
def seen(tab: Tab) -> list[dict[str, Any]]:
    """All stations, walked through once."""
    found: list[dict[str, Any]] = clean(tab.drive("functionNumbers", stations=STATIONS, looked=1))
    return found


@pytest.mark.parametrize("at", range(len(STATIONS)))
def test_pictures_and_tables_show_what_was_recorded(seen: list[dict[str, Any]], at: int) -> None:
    station, found = STATIONS[at], seen[at]
    step, run = int(station["s"]), str(station["r"])
    measure, keys = str(station.get("fm", "relative")), [f"{one.kind}/{one.name}" for one in PLACES]
    place = keys.index(str(station.get("pl", keys[-1])))
    expected = [[name, as_text(recorded(name, place, measure, step), measure)] for name in STEPS]
    assert found["values"] == expected
    cells = [as_text(recorded(run, other, measure, step), measure) for other in range(len(PLACES))]
    assert (found["names"], found["numbers"]) == (NAMES, cells)
    assert found["tables"]["cells"]["head"] == ["Place", *STEPS]
    for row, other in zip(found["tables"]["cells"]["rows"], range(len(PLACES)), strict=True):
        texts = [as_text(recorded(name, other, measure, step), measure) for name in STEPS]
        assert row == [NAMES[other], *texts]
    lines = dict(enumerate(found["tables"]["lines"]["rows"]))
    every = sorted({one for steps in STEPS.values() for one in steps})
    assert [row[0] for row in lines.values()] == [str(one) for one in every]
    for row, own in zip(lines.values(), every, strict=True):
        exact = [
            recorded(name, place, measure, own) if own in STEPS[name] else np.nan for name in STEPS
        ]
        assert row[1:] == [as_text(value, measure) for value in exact]
    scatter = found["tables"]["scatter"]["rows"]
    assert scatter == [
        [layer, moved(run, layer, step), as_text(recorded(run, other, "relative", step))]
        for other, layer in enumerate(LAYERS)
    ]


def test_what_is_there_is_shown_while_answers_come_one_by_one(tab: Tab) -> None:
    names = list(STEPS)
    for count, shown in enumerate(clean(tab.drive("functionSlowly", runs=names)), 1):
        assert [name for name, _ in shown["values"]] == names[:count]
        columns = len(shown["labels"]) - 2  # beside lines and dots
        assert columns in (1, count)
        assert (shown["names"], len(shown["numbers"])) == (NAMES, columns * len(PLACES))


def test_only_the_measures_of_the_place_are_offered(seen: list[dict[str, Any]]) -> None:
    two = ["Relative", "1 − cosine"]
    assert [found["measures"] for found in seen[:3]] == [
        [*two, "KL divergence", "Changed predictions"],
        two,
        two,
    ]
    assert seen[4]["measures"] == two  # of an output that doesn't decide


def test_each_picture_says_its_numbers(seen: list[dict[str, Any]]) -> None:
    for station, found in zip(STATIONS, seen, strict=True):
        assert len(found["labels"]) == 3
        assert {role for role, _ in found["labels"]} == {"img"}
        lines, cells, scatter = (label for _, label in found["labels"])
        assert all(f"step {station['s']}" in label for label in (lines, cells, scatter))
        assert ", ".join(" ".join(pair) for pair in found["values"]) in lines
        assert dict(found["values"])[str(station["r"])] in cells
    carried = as_text(recorded("freezing", 1, "relative", 35))
    assert f"block/conv2: weights frozen, output {carried}" in seen[3]["labels"][2][1]


@pytest.mark.parametrize("looked", [1, pytest.param(len(STATIONS), marks=pytest.mark.prove)])
def test_the_tables_are_accessible(tab: Tab, seen: list[dict[str, Any]], looked: int) -> None:
    """At one station: the tables of the others differ in numbers."""
    if looked > 1:
        seen = clean(tab.drive("functionNumbers", stations=STATIONS, looked=looked))
    assert [station["tables"]["axe"] for station in seen[:looked]] == [[]] * looked


def test_the_probe_is_described_and_what_differs_is_said(
    tab: Tab, seen: list[dict[str, Any]]
) -> None:
    batch, past, records, *notes = seen[0]["probe"]
    assert batch == "image: 32 samples of 8×8×1 float32, digest 5a0c9f3e"
    assert past == "Compared with the previous step"
    assert records == f"40 records, steps 1 to 40, of {len(PLACES)} places"
    assert "calm, freezing: the previous step; epochs: the end of the last epoch" in notes[0]
    assert "different batches" in notes[1]
    assert notes[2] == f"1 selected run without a probe: {BARE}"
    assert seen[5]["probe"][1] == "Compared with the end of the last epoch"
    header, _ = tab.arrays("function", run="calm")
    assert [one["name"] for one in header["places"]] == [one.name for one in PLACES]


def test_numbers_are_those_of_the_route(tab: Tab, seen: list[dict[str, Any]]) -> None:
    for station, found in zip(STATIONS, seen, strict=True):
        _, arrays = tab.arrays("function", run=station["r"])
        record = int((arrays["steps"] <= station["s"]).sum()) - 1
        relative = [as_text(float(one)) for one in arrays["values"][0, : len(LAYERS), record]]
        assert [row[2] for row in found["tables"]["scatter"]["rows"]] == relative


def test_keys_and_clicks_walk_and_every_address_restores(tab: Tab) -> None:
    found = clean(tab.drive("functionWalk"))
    stations = {one["name"]: one for one in found["stations"]}
    assert found["afresh"] == [one["state"] for one in found["stations"]]
    assert "p.pastnet.s=3" in stations["step 3"]["hash"]
    second = stations["second layer of the second run"]["hash"]
    assert "p.pastnet.r=epochs" in second
    assert "p.pastnet.pl=layer%2Fblock%2Fconv2" in second
    assert "p.pastnet.fm=cosine" in stations["cosine"]["hash"]
    assert "p.pastnet.pl=layer%2Fconv1" in stations["clicked the first layer"]["hash"]
    [tip] = found["hovered"]["tip"]
    assert tip.startswith("conv1epochs · step ")
    assert len(set(found["hovered"]["pills"])) == 1  # one crosshair for all panels
    assert any("epochs at step" in text for text in found["spoken"])
    assert found["opened"]["titles"] == ["conv1"]
    assert "p.pastnet.r=epochs" in found["opened"]["hash"]
    assert found["back"] == found["stations"][-1]["hash"]


def test_both_themes_are_accessible_without_eval(tab: Tab) -> None:
    found = clean(tab.drive("functionLook"))
    for theme in ("light", "dark"):
        assert found[theme]["axe"] == []
        assert len(found[theme]["colours"]) == 3
        assert min(found[theme]["colours"]) > 2


def test_without_a_probe_it_teaches(tab: Tab) -> None:
    found = clean(tab.drive("functionTeaches", hidden=",".join(STEPS)))
    assert "probe=probe" in found["lines"][0]
    assert "x_test[:32]" in found["lines"][0]
    assert found["text"][-1] == f"Selected runs without a probe: {BARE}."
    assert found["axe"] == []


def test_an_error_names_itself_and_retry_mends_it(tab: Tab) -> None:
    found = clean(tab.drive("functionFails", run="freezing"))
    assert found["before"]["alerts"] == [
        "freezing: not loaded. Could not read the probe. <b>Try</b> again."
    ]
    assert found["before"]["runs"] == ["calm", "epochs"]
    assert (found["alerts"], found["runs"]) == ([], list(STEPS))


def test_downloads_are_of_the_view(tab: Tab) -> None:
    found = clean(tab.drive("functionTake"))
    assert found["png"]["data"] == "\x89PNG\r\n\x1a\n"
    assert found["png"]["name"] == "pastnet-Function_calm.png"
    assert found["png"]["menu"][:3] == PICTURES
    assert len(found["png"]["menu"]) == 3 + 1
    lines = found["csv"]["data"].encode("latin1").decode().splitlines()
    # One table for all runs; that without a probe has no changes.
    own = {run: tab.fetch("export.csv", run=run, function=1).decode().splitlines() for run in STEPS}
    assert lines[0] == f"run,{own['calm'][0]}"
    assert lines[1:] == [f"{run},{line}" for run, table in own.items() for line in table[1:]]
    assert len(lines) == 1 + sum(map(len, STEPS.values())) * len(PLACES)
    assert any(HOSTILE in line for line in lines)
    # A picture's legend explains the states that are in it.
    assert found["legends"] == [
        ["Quiet", "Frozen", "Pruned"],
        ["Moving, Δ from", "Quiet", "Frozen", "Pruned", "Violated"],
        ["Moving, Δ from", "Quiet", "Frozen", "Pruned", "Violated"],
    ]


def test_new_records_appear_when_tensorboard_reloads(tmp_path: Path) -> None:
    logdir = tmp_path / "logs"
    writer = LineageWriter(logdir, "calm", layers=LAYERS)

    def more(steps: range) -> None:
        writer.records(steps)
        probed.write(writer, change("calm", steps, steps[0] - 1))

    writer.describe(0)
    more(range(1, 11))
    with tensorboard(logdir) as running:
        wait(lambda: known(running, 1, 10), "the first records")
        answers = BROWSER.answers(running.base, "functionGrows", {"run": "calm", "last": 30})
        last = len(PLACES) - 1
        assert next(answers)["told"] == [["calm", as_text(recorded("calm", last, "relative", 10))]]
        more(range(11, 31))
        found = clean(next(answers))
    assert found["after"]["values"] == [["calm", as_text(recorded("calm", last, "relative", 30))]]
    assert set(found["pills"]) == {"30"}
