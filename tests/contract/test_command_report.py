"""`report` says what the routes say, and fails for a script where it is asked to."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tb_pastnet as pastnet
from tb_pastnet.core import channel_states
from tests import event_files as files
from tests.commands import command
from tests.contract.test_http_api import sample_log
from tests.tensorboards import LOADERS, board


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    logdir = tmp_path / "log"
    sample_log(logdir)
    return logdir


@pytest.mark.parametrize("loader", LOADERS)
def test_its_numbers_are_those_of_the_routes(sample: Path, loader: str) -> None:
    writer = files.write_run(sample, "more", range(1, 81), lineage=3)
    data = bytearray(writer.path.read_bytes())
    if loader == "fast":  # the slow one ends a file where the checksum of a frame fails
        data[len(data) // 2] ^= 1
    writer.path.write_bytes(data)
    told = {run["name"]: run for run in command("report", sample, "--json").json["runs"]}
    with board(sample, loader) as here:
        index = {run["name"]: run for run in here.json("/index")["runs"]}
        assert list(told) == list(index)
        for name, run in told.items():
            for key in ("records", "first_step", "last_step", "account", "closed", "every", "past"):
                assert run[key] == index[name][key]
            header, _ = here.arrays("/overview", run=name)
            _, arrays = here.arrays("/records", run=name)
            assert [layer["layer"] for layer in run["layers"]] == header["layers"]
            lost = sum(account["unreadable"] for account in header["accounts"])
            assert run["unreadable"] == lost + run["account"]["unreadable"]
            for at, layer in enumerate(run["layers"]):
                counts, violated = arrays["counts"][at, -1], arrays["violated"][at, -1]
                if arrays["age"][at, -1]:  # the last record itself can't be read
                    counts, violated = [header["channels"][at], 0, 0, 0, 0, 0], 0
                states = ("no_data", *channel_states.NAMES[1:])
                assert [layer[state] for state in states] == list(counts)
                assert layer["violated"] == violated
                assert layer["pruned_weights"] == arrays["pruned"][at, -1]
                assert layer["prunable_weights"] == header["prunable"][at]
            sparsity = arrays["pruned"][:, -1].sum() / sum(header["prunable"])
            assert run["sparsity"] == pytest.approx(sparsity, rel=1e-12)
            assert run["violated_channels"] == header["violated_channels"]
            found = here.json("/violations", run=name)["violations"]
            assert run["violations"] == found
            size = sum(p.stat().st_size for p in (sample / name).rglob("*tfevents*"))
            assert run["bytes"] == size
            assert run["bytes_per_record"] == round(size / run["records"], 1)


@pytest.mark.parametrize(
    ("what", "run", "code", "said"),
    [
        ("violations", "dense", 1, "failed: violations in the run 'dense': 1 channel\n"),
        ("violations", "ticket", 0, ""),
        ("unfinished", "ticket", 1, "failed: unfinished in the run 'ticket': 1 run\n"),
        ("unfinished", "dense", 0, ""),
        ("unreadable,dropped,nonfinite", "dense", 0, ""),
        ("masks,resumed", "ticket", 1, "failed: masks in the run 'ticket': 1 finding\n"),
        ("violations", None, 1, "failed: violations in the run 'dense': 1 channel\n"),
    ],
)
def test_a_script_can_rely_on_its_exit_code(
    sample: Path, what: str, run: str | None, code: int, said: str
) -> None:
    done = command("report", sample, *(["--run", run] if run else []), "--fail-on", what)
    assert (done.code, done.error) == (code, said)


def test_each_failure_is_found(tmp_path: Path) -> None:
    writer = files.LineageWriter(tmp_path, layers={"conv1": 2})
    writer.describe(0)
    codes = files.poison(files.codes(range(1, 4), 2), slice(2, 3), slice(1, 2))
    writer.records(range(1, 4), {"conv1/kernel": codes}, dropped=3)
    words = "nonfinite,dropped", "unfinished,unreadable"
    done = command("report", tmp_path, "--fail-on", words[0], "--fail-on", words[1])
    assert done.code == 1
    assert [line.split(":")[1:] for line in done.error.splitlines()] == [
        [" nonfinite in the run 'a'", " 1 channel"],
        [" dropped in the run 'a'", " 3 records"],
        [" unfinished in the run 'a'", " 1 run"],
    ]
    data = bytearray(writer.path.read_bytes())
    data[data.index(b"channels/conv1/kernel") + 60] ^= 1
    writer.path.write_bytes(data)
    done = command("report", tmp_path, "--fail-on", "unreadable")
    assert (done.code, done.error) == (1, "failed: unreadable in the run 'a': 3 records\n")


def test_where_there_is_nothing_to_look_at_a_check_fails(tmp_path: Path) -> None:
    assert command("report", tmp_path).code == 0
    done = command("report", tmp_path, "--fail-on", "violations")
    assert (done.code, done.error) == (1, "failed: there is no run\n")
    assert command("report", tmp_path, "--fail-on", "violations", "--json").json == {
        "schema": 2,
        "runs": [],
        "findings": [],
        "failed": ["there is no run"],
        "warnings": [],
    }


def test_people_read_states_violations_and_notes(sample: Path) -> None:
    out = command("report", sample, "--run", "dense").out
    assert "6 records, steps 1 to 6; 1 writer; ended normally" in out
    assert "sparsity 22.2%" in out
    assert "1 channel, in 1 weight, changed while frozen or pruned:" in out
    assert "1 of 4 held weights moved at step 6, by at most 0.00125" in out
    assert "The queue was full (1)" in out
    head = next(line for line in out.splitlines() if "at the last record" in line)
    row = next(line for line in out.splitlines() if line.startswith("  conv1 "))
    cells = dict(zip(head.split()[4:], row.split()[1:], strict=False))
    assert (cells["channels"], cells["moving"], cells["frozen"]) == ("2", "1", "1")


def test_a_layer_that_lacks_the_last_record_says_so(tmp_path: Path) -> None:
    writer = files.write_run(tmp_path, layers={"conv1": 2, "conv2": 3}, steps=range(1, 17))
    data = bytearray(writer.path.read_bytes())
    data[data.index(b"channels/conv1/kernel") + 60] ^= 1
    writer.path.write_bytes(data)
    [run] = command("report", tmp_path, "--json").json["runs"]
    assert [(layer["no_data"], layer["moving"]) for layer in run["layers"]] == [(2, 0), (0, 3)]
    assert "no record" in command("report", tmp_path).out


def test_a_run_that_isnt_there_is_named(sample: Path) -> None:
    done = command("report", sample, "--run", "dens")
    assert (done.code, done.out) == (2, "")
    assert "'dens'" in done.error
    assert "dense" in done.error


def test_a_threshold_changes_what_is_settled(tmp_path: Path) -> None:
    files.write_run(tmp_path, layers={"conv1": 2})
    moving = command("report", tmp_path, "--json").json["runs"][0]["layers"][0]
    quiet = command("report", tmp_path, "--json", "--threshold", "10").json["runs"][0]
    assert (moving["moving"], moving["quiet"]) == (2, 0)
    assert (quiet["layers"][0]["quiet"], quiet["threshold"]) == (2, 10.0)


def test_a_log_of_summary_calls_is_reported(tmp_path: Path) -> None:
    from tb_pastnet.format.block import Block, encode_block

    content = json.dumps({"v": 1, "shape": [2, 3], "axis": "-1", "channels": 3}).encode()
    path = tmp_path / "own" / "events.out.tfevents.1700000000.host"
    path.parent.mkdir()
    for step in range(3):
        steps = np.array([step])
        block = Block(steps, steps, steps - 1, files.codes(steps, 3))
        message = encode_block(block, tag="dense/kernel", lineage=0)
        with path.open("ab") as file:
            file.write(files.frame(files.event("dense/kernel", step, message, content=content)))
    done = command("report", tmp_path, "--fail-on", "unfinished")
    assert (done.code, done.error) == (0, "")
    assert "3 records, steps 0 to 2; written by tf.summary" in done.out


def test_only_bytes_of_a_run_are_counted_as_its_own(tmp_path: Path) -> None:
    created = {"created": files.CREATED}
    first = files.LineageWriter(tmp_path, "a", ordinal=1, lineage=7, first_step=0, **created)
    second = files.LineageWriter(tmp_path, "a", ordinal=2, lineage=3, first_step=1, **created)
    for writer, step in ((first, 0), (second, 1), (first, 2), (second, 3), (second, 5)):
        writer.describe(writer.first_step)
        writer.records([step])
    own = tmp_path / "a" / "events.out.tfevents.1700000000.host"
    own.write_bytes(files.frame(files.scalar_event("loss", 1, 0.5)) * 100)
    told = {run["name"]: run["bytes"] for run in command("report", tmp_path, "--json").json["runs"]}
    assert told == {
        "a": first.path.stat().st_size,
        "a (2)": second.path.stat().st_size,
    }


def test_what_cant_be_opened_is_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write_run(tmp_path, "a")
    files.write_run(tmp_path, "b", lineage=2)
    files.forbid(tmp_path / "b", monkeypatch)
    done = command("report", tmp_path, "--fail-on", "unreadable")
    assert (done.code, done.error) == (1, "failed: files and directories that can't be opened: 1\n")
    assert command("report", tmp_path, "--fail-on", "violations").code == 0


def test_the_json_has_how_far_layers_travelled(tmp_path: Path) -> None:
    weight, small = np.zeros((65, 3)), np.zeros((2, 2))
    weights = {"dense/kernel": weight.copy, "small/kernel": small.copy}
    with pastnet.numpy.Recorder(tmp_path, weights, every=1) as recorder:
        for step in range(1, 6):
            weight[7, 1] += 2
            small += 1
            recorder.record(step)
    (run,) = command("report", tmp_path, "--json").json["runs"]
    found = {layer["layer"]: layer["travel"] for layer in run["layers"]}
    assert found["small"] is None  # of at most 64 weights
    assert found["dense"]["step"] == run["travel"]["step"] == 5
    assert found["dense"]["distance"] == run["travel"]["distance"] == pytest.approx(8, rel=1e-3)
    assert found["dense"]["error"] >= 0
