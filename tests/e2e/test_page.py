"""The page inside a real TensorBoard: no errors, right numbers, addresses that restore, names as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e.browser import clean
from tests.e2e.conftest import Tab, known, tensorboard, wait
from tests.e2e.stories import (
    LAYERS,
    PARTS,
    RUNS,
    STORY_RECORDS,
    STORY_RUNS,
    in_row,
    neighbour,
    record,
)
from tests.e2e.texts import cell_texts, head_text, shares_text, total_of
from tests.event_files import LineageWriter, write_run

STATES = ("no data", "moving", "reactivated", "quiet", "frozen", "pruned")
TOTAL = "All layers"


def number(text: str) -> int:
    """12 of "12 (34%)"."""
    return int(text.split(" ", maxsplit=1)[0].replace(",", ""))


@pytest.mark.parametrize(
    ("theme", "background"), [("light", "rgb(245, 246, 247)"), ("dark", "rgb(58, 58, 58)")]
)
def test_each_view_is_accessible_in_both_themes_without_errors_or_eval(
    tab: Tab, theme: str, background: str
) -> None:
    found = clean(tab.drive("look", layer="block/conv2", run="leaky", theme=theme))
    assert {name: view["axe"] for name, view in found.items()} == {name: [] for name in found}
    assert {found[name]["background"] for name in ("findings", "network")} == {background}
    for name in ("network", "layer"):
        canvases = found[name]["canvases"]
        # Strips of all runs and dots; heatmap, its strip and bars, the other runs, the inspector.
        assert len(canvases) >= (2 if "network" in name else STORY_RUNS + 1)
        for canvas in canvases:
            assert canvas["role"] == "img"
            assert "step" in canvas["label"]
        painted = [
            canvas["colours"] > 1 for canvas in canvases if "Relative" not in canvas["label"]
        ]
        assert all(painted)


def test_heads_and_table_of_the_network_show_what_was_written(told: Tab) -> None:
    steps = (1, 22, 35, 40, 50)
    found = clean(told.drive("network", steps=steps))
    for step in steps:
        shown = {(row[0].rstrip("/"), row[1]): row[2:] for row in found[str(step)]["rows"]}
        assert set(shown) == {(row, run) for row in PARTS for run in RUNS}
        for (row, run), cells in shown.items():
            counts, at = in_row(run, row, step), record(run, step)
            numbers = [str(total_of(counts)), str(at)] if at else ["–", "–"]
            # Of each channel nine weights can be pruned.
            weights, share = 9 * counts["pruned"], 100 * counts["pruned"] / max(total_of(counts), 1)
            pruned = f"{weights} ({share:.1f}%)" if weights else "0 (0%)"
            rest = ["0", pruned] if at else ["–", "–"]
            assert cells == [*numbers, *cell_texts(counts), *rest], (row, run, step)
        total = {run: in_row(run, TOTAL, step) for run in RUNS}
        heads = [
            head_text(counts, record(run, step), step) if total_of(counts) else "no record yet"
            for run, counts in total.items()
        ]
        assert found[str(step)]["heads"] == heads
        assert found[str(step)]["bars"] == [
            f"{run}: {shares_text(one)}" for run, one in total.items()
        ]


def test_layer_channel_and_account_show_the_numbers_of_the_routes(told: Tab) -> None:
    run, layer, channel, step = "leaky", "block/conv2", 1, 30
    found = clean(told.drive("layer", layer=layer, run=run, channel=channel, step=step))
    _, arrays = told.arrays("layer", run=run, layer=layer)
    record = list(arrays["steps"]).index(step)
    for row in found["channels"]:
        byte = int(arrays["state"][int(row[0]), record])
        assert row[1] == STATES[byte & 7]
        assert ("now" in row[5]) == bool(byte & 0x80)
    assert sorted(int(row[0]) for row in found["channels"]) == list(range(LAYERS[layer]))
    answer = told.json("channel", run=run, layer=layer, channel=channel)
    assert [number(row[0]) for row in found["records"]] == answer["steps"]
    assert [row[2] for row in found["records"]] == answer["state"]
    assert [row[3] == "violated" for row in found["records"]] == answer["violated"]
    assert [row[4] == "0" for row in found["records"]] == [
        delta == 0 for delta in answer["relative_delta"]
    ]
    assert len(found["changes"]) == len(answer["changes"]) > 0
    marked = [at for at, mark in zip(answer["steps"], answer["violated"], strict=True) if mark]
    assert f"from step {marked[0]} to {marked[-1]}, by up to" in found["violation"][0]
    assert "Likely cause: unknown" in found["violation"][0]  # no audit was written
    assert found["metrics"]["Last moved"] == "40"
    assert found["metrics"]["Trainable"] == "0% of 9"
    parts = ("offered", "shown", "superseded", "thinned", "dropped", "unreadable")
    accounts = {
        entry["name"]: [
            *(f"{entry['account'][part]:,}" for part in parts),
            *(["0.9%", "1.2 MB", "–"] if entry["overhead"] else ["–"] * 3),
        ]
        for entry in told.json("index")["runs"]
    }
    account = found["account"]
    assert [row[0] for row in account["rows"]] == [
        *("due", *parts[1:], "recording overhead", "size", "memory")
    ]
    columns = zip(*(row[1:] for row in account["rows"]), strict=True)
    shown = {run: list(column) for run, column in zip(account["runs"], columns, strict=True)}
    assert shown == accounts
    assert accounts["pruned"][4:] == ["3", "0", "–", "–", "–"]
    assert accounts["leaky"][-3:] == ["0.9%", "1.2 MB", "–"]


def test_addresses_restore_and_back_works(tab: Tab) -> None:
    found = clean(tab.drive("walk", layer="block/conv2"))
    stations = {station["name"]: station for station in found["stations"]}
    assert "p.pastnet" not in stations["findings"]["hash"]  # defaults are left out
    assert stations["network"]["hash"] == "#pastnet&p.pastnet.v=network"
    assert "p.pastnet.s=" in stations["step"]["hash"]
    assert "p.pastnet.v=layer&p.pastnet.l=block%2Fconv2" in stations["layer"]["hash"]
    for part in ("p.pastnet.c=", "p.pastnet.m=state", "p.pastnet.o=index"):
        assert part in stations["channel"]["hash"]
    back, forward = found["backs"]
    assert back == {"hash": stations["step"]["hash"], "state": stations["step"]["state"]}
    assert forward == {"hash": stations["channel"]["hash"], "state": stations["channel"]["state"]}
    assert found["afresh"] == [station["state"] for station in found["stations"]]
    assert found["after"] == found["history"]  # TensorBoard's own


def test_filters_ticks_zoom_drill_badge_and_threshold(tab: Tab) -> None:
    found = clean(tab.drive("interact"))
    assert found["filtered"] == ["conv1", "block/conv2", "block/conv3"]
    wrong = found["wrong"]
    assert (wrong["names"], wrong["invalid"]) == (found["filtered"], "true")
    assert "underline" in wrong["decoration"]
    assert found["runs"] == ["pruned"]
    assert found["unticked"] == ["frozen", "leaky", "pruned"]
    assert found["hover"]["cross"]["lines"] == STORY_RUNS
    assert found["hover"]["cross"]["x"] > 0
    assert found["hover"]["pill"][0] in found["hover"]["tip"][0]
    # The legend is of the run under the pointer, at the record there.
    assert found["hover"]["legend"] == f"dense, step {found['hover']['pill'][0]}"
    assert found["hover"]["beside"] == f"frozen, step {found['hover']['pill'][0]}"
    assert found["cancelled"] == ["1", "0", []]
    assert found["zoomed"] != found["reset"]
    # In a zoom the cursor stays inside: at its first record, there still, at its last, and at the end.
    [chip] = found["inside"]["range"]
    first, last = map(int, re.findall(r"\d+", chip))
    assert 1 < first < last < 40
    records = [step for step in range(first, last) if step <= 40 or step % 2 == 0]
    assert found["inside"]["pills"] == [str(records[at]) for at in (0, 0, -1, -1)]
    assert found["zoomStep"] is False  # a drag is no click
    # Where one column was dragged over, each has the box.
    assert found["box"] == pytest.approx(
        {"boxes": STORY_RUNS, "from": 0.25, "share": 0.25}, abs=0.02
    )
    assert found["drilled"] == ["conv1"]
    assert found["up"] == 1
    assert found["badge"]["title"] == ["Channel 0"]
    assert "Changed while frozen" in found["badge"]["violation"][0]
    assert found["badge"]["pill"] == ["26"]
    assert found["threshold"] == "relative delta under 10⁻³"


def test_an_address_of_what_is_not_there_says_so(tab: Tab) -> None:
    addresses = [{"v": "layer", "l": "gone"}, {"v": "network", "x": ",".join(RUNS)}]
    layer, runs = clean(tab.drive("lost", addresses=addresses))
    assert layer[0].startswith("No selected run has layer 'gone'.")
    assert runs[0].startswith("No runs selected.")


def test_a_failed_route_says_so_as_text_and_can_be_tried_again(tab: Tab) -> None:
    seen = tab.drive("failure")
    found = clean(seen)
    assert found["alerts"] == ["Could not read the run. <b>Try</b> again."] * STORY_RUNS
    assert found["bold"] == 0
    assert "conv1" in found["names"]
    assert found["after"] == []
    assert "moving" in found["heads"][0]


def test_what_takes_long_shows_that_something_is_awaited(tab: Tab) -> None:
    found = clean(tab.drive("waiting"))
    assert found["before"] == 0
    assert found["meanwhile"] == {"pictures": 0, "signs": 1}
    assert found["after"] == {"pictures": 1, "signs": 0}


def test_the_link_is_copied_without_a_clipboard_and_files_are_saved(tab: Tab) -> None:
    found = clean(tab.drive("take"))
    address = f"{tab.base}/#pastnet&p.pastnet.v=network"
    assert found["link"] == ["copy", f"{address}&p.pastnet.s=7"]
    assert found["followed"] == ["copy", f"{address}&p.pastnet.s=40"]  # the end of most runs
    assert found["png"]["name"] == "pastnet-Network.png"
    assert found["png"]["head"].startswith("\x89PNG")
    assert re.fullmatch(r"pastnet-\d_runs\.csv", found["csv"]["name"])
    assert found["csv"]["head"].startswith("run,step,layer,channels,moving")


def test_a_log_without_our_data_teaches(tmp_path: Path) -> None:
    logdir = tmp_path / "logs"
    neighbour(logdir)
    with tensorboard(logdir) as tab:
        wait(lambda: tab.json("index")["other_runs"] == 1, "the other run")
        found = clean(tab.drive("empty"))
    assert "TensorBoard found 1 run here, none with PastNet data." in found["text"][0]
    calls = ("watch(model, ", "PastNetCallback(", "jax.Recorder(", "numpy.Recorder(")
    assert len(found["lines"]) == len(calls)
    for lines, call in zip(found["lines"], calls, strict=True):
        assert lines.startswith("import tb_pastnet as pastnet\n")
        assert f"pastnet.{call}" in lines
    assert found["axe"] == []


@pytest.mark.parametrize(
    ("steps", "layers"),
    [(range(5, 6), {"only": 1}), (range(0), {"only": 3})],
    ids=["one record of one channel", "no record"],
)
def test_small_logs_are_drawn(tmp_path: Path, steps: range, layers: dict[str, int]) -> None:
    logdir = tmp_path / "logs"
    if steps:
        write_run(logdir, "run", steps, layers=layers)
    else:
        LineageWriter(logdir, "run", layers=layers).describe(0)
    with tensorboard(logdir) as tab:
        wait(lambda: known(tab, 1, len(steps)), "the run")
        found = clean(tab.drive("names") if steps else tab.drive("empty"))
    if steps:
        assert (found["layers"], found["opened"]) == (["only"], ["only"])
    else:
        assert found["text"] == []


def test_the_story_is_the_one_that_the_tests_count_on(tab: Tab) -> None:
    assert sum(run["records"] for run in tab.json("index")["runs"]) == STORY_RECORDS
