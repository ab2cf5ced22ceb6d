"""What a probe recorded, in both loaders: exact values, restarts, other probes, and damaged logs."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard import context
from tensorboard.compat.proto import tensor_pb2

from tb_pastnet.format.envelope import Kind, seal
from tb_pastnet.format.function_change import MEASURES, Input, Place
from tb_pastnet.format.tags import TAG_FUNCTION
from tb_pastnet.reader import notes
from tb_pastnet.reader.series_source import RequestContext
from tb_pastnet.reader.store import Store
from tests import event_files as files
from tests import probed
from tests.both_loaders import everything, in_both
from tests.security.test_hostile_names import LAYERS
from tests.tensorboards import LOADERS, Board, board

CALLER = RequestContext(context.RequestContext(), "")


def begun(logdir: Path, steps: range, run: str = "a", **more: Any) -> files.LineageWriter:
    """A lineage with records of all variables and without a probe yet."""
    writer = files.LineageWriter(logdir, run, first_step=steps.start, **more)
    writer.describe(steps.start)
    writer.records(steps)
    return writer


def told(here: Board, run: str = "a") -> dict[str, Any]:
    """The answer as plain values; NaN as None, so that it equals itself."""
    header, arrays = here.arrays("/function", run=run)
    values = arrays["values"]
    assert values.shape == (len(MEASURES), len(header["places"]), len(arrays["steps"]))
    assert (values.dtype, arrays["steps"].dtype) == (np.float32, np.float64)
    del header["sections"]
    cells = np.where(np.isnan(values), None, values.astype(object)).tolist()
    return {**header, **{n: arrays[n].tolist() for n in ("steps", "past_steps")}, "values": cells}


def cells(steps: range, **more: Any) -> list[Any]:
    """What was written, laid out as it is answered."""
    found = probed.values(steps, **more).transpose(0, 2, 1)
    return np.where(np.isnan(found), None, found.astype(object)).tolist()


def test_all_of_1000_records_come_back_to_the_last_bit(tmp_path: Path) -> None:
    steps = range(1, 1001)
    probed.written(begun(tmp_path, steps), steps)

    def look(here: Board) -> Any:
        assert here.json("/index")["runs"][0]["probe"] is True
        table = here.get("/export.csv", run="a", function=1).get_data(as_text=True)
        return told(here), list(csv.DictReader(table.splitlines()))

    found, lines = in_both(tmp_path, look)
    assert found["values"] == cells(steps)
    assert (found["steps"], found["past_steps"]) == (list(steps), list(range(1000)))
    assert (found["measures"], found["changed"], found["notes"]) == (list(MEASURES), [], [])
    (image,) = found["probe"]
    assert image == {"name": "image", "shape": [64, 8, 8, 1], "dtype": "float32", "digest": "5a0c"}
    assert found["places"][2] == {"kind": "output", "name": "classes", "elements": 10}
    right = probed.values(steps)[1].ravel()
    np.testing.assert_allclose([float(line["cosine"]) for line in lines], right, rtol=1e-6)


def test_a_run_without_a_probe_and_one_without_a_record(tmp_path: Path) -> None:
    begun(tmp_path, range(1, 5), "a")
    files.LineageWriter(tmp_path, "empty", lineage=2).describe(0)

    def look(here: Board) -> Any:
        assert [run["probe"] for run in here.json("/index")["runs"]] == [False, False]
        table = here.get("/export.csv", run="empty", function=1).get_data(as_text=True)
        assert table == "step,past_step,kind,place,relative,cosine,divergence,decisions\r\n"
        return [told(here, run) for run in ("a", "empty")]

    for one in in_both(tmp_path, look):
        assert (one["probe"], one["places"], one["steps"]) == ([], [], [])
        assert one["notes"] == []


def test_a_restart_that_goes_back_gives_one_answer(tmp_path: Path) -> None:
    probed.written(begun(tmp_path, range(1, 41)), range(1, 41))
    two = begun(tmp_path, range(31, 51), ordinal=2, lineage=4)
    probed.written(two, range(31, 51), seed=3)
    found = in_both(tmp_path, told)
    assert found["steps"] == list(range(1, 51))
    assert found["values"] == [
        [old + new for old, new in zip(*of, strict=True)]
        for of in zip(cells(range(1, 31)), cells(range(31, 51), seed=3), strict=True)
    ]
    assert found["notes"] == []


def test_a_restart_without_a_probe_replaces_what_came_after_it(tmp_path: Path) -> None:
    probed.written(begun(tmp_path, range(1, 41)), range(1, 41))
    begun(tmp_path, range(31, 51), ordinal=2, lineage=4)
    assert in_both(tmp_path, told)["steps"] == list(range(1, 31))


def test_another_probe_after_a_resume_is_told_and_its_places_join(tmp_path: Path) -> None:
    probed.written(begun(tmp_path, range(1, 21)), range(1, 21))
    other = (Input("tokens", (8, 128), "int32"), Input("", (8,), "bool"))
    places = (probed.PLACES[2], Place("layer", "new", 5))
    two = begun(tmp_path, range(21, 31), ordinal=2, lineage=4)
    probed.written(two, range(21, 31), places=places, probe=other)
    found = in_both(tmp_path, told)
    assert [one["name"] for one in found["places"]] == ["conv1", "block/conv2", "classes", "new"]
    assert [one["name"] for one in found["probe"]] == ["tokens", ""]
    assert found["changed"] == [21]
    before, after = cells(range(1, 21)), cells(range(21, 31), places=2)
    for measure in range(4):
        (conv1, conv2, classes), (again, new) = before[measure], after[measure]
        assert found["values"][measure] == [
            conv1 + [None] * 10, conv2 + [None] * 10, classes + again, [None] * 20 + new,
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("spoil", "note"),
    [
        (lambda message: message[:-1] + bytes([message[-1] ^ 1]), notes.DAMAGED),
        (lambda message: message[:4] + b"\x02" + message[5:], notes.NEWER),
        (lambda _: b"not ours", notes.FOREIGN),
        (lambda _: seal(b"\xff" * 9, Kind.FUNCTION, tag=TAG_FUNCTION, step=32, lineage=0x3F9A2C1B),
         notes.DAMAGED),
        (lambda _: seal(b"", Kind.MASKS, tag=TAG_FUNCTION, step=32, lineage=0x3F9A2C1B),
         notes.DAMAGED),
    ],
    ids=["flipped", "future", "foreign", "sealed nonsense", "another kind"],
)  # fmt: skip
def test_a_message_that_cant_be_read_is_counted_and_the_others_are_shown(
    tmp_path: Path, spoil: Callable[[bytes], bytes], note: str
) -> None:
    writer = begun(tmp_path, range(1, 49))
    written = writer.put

    def put(tag: str, step: int, message: Any, **more: Any) -> None:
        written(tag, step, spoil(message) if step == 32 else message, **more)

    writer.put = put  # type: ignore[method-assign]
    probed.written(writer, range(1, 49))

    def look(here: Board) -> Any:
        (run,) = here.json("/index")["runs"]
        assert (run["records"], run["notes"], run["probe"]) == (48, [], True)
        return told(here)

    found = in_both(tmp_path, look)
    assert found["notes"] == [
        {"text": notes.FUNCTION_MISSING, "count": 16},
        {"text": note, "count": 1},
    ]
    assert found["steps"] == [*range(1, 17), *range(33, 49)]


def test_a_tensor_that_tensorboard_cant_convert_costs_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = begun(tmp_path, range(1, 49))
    probed.written(writer, range(1, 17))
    broken = tensor_pb2.TensorProto(dtype=files.DT_UINT8, tensor_content=b"12345")
    broken.tensor_shape.dim.add(size=7)
    writer.put(TAG_FUNCTION, 17, None, tensor=broken)
    probed.written(writer, range(18, 49), 17)
    found = in_both(tmp_path, told)
    assert found["steps"] == [*range(1, 17), *range(18, 49)]
    missing = {"text": notes.FUNCTION_MISSING, "count": 1}
    assert found["notes"] == [{"text": notes.FOREIGN, "count": 1}, missing]

    def look(here: Board) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr("tb_pastnet.reader.tensorboard_source.raw_read", lambda *_: None)
            withheld = told(here)
        # Nothing of it was kept: it is asked for again.
        assert told(here) == found
        return withheld

    withheld = in_both(tmp_path, look)
    assert (withheld["places"], withheld["steps"]) == ([], [])
    assert withheld["notes"] == [{"text": notes.WITHHELD, "count": 1}]


@pytest.mark.parametrize("tag", ["channels/nothing", TAG_FUNCTION])
def test_a_series_without_any_value_fails_nobody(tmp_path: Path, tag: str) -> None:
    """TensorBoard's slow loader raises KeyError when it lists such a series."""
    writer = begun(tmp_path, range(1, 17))
    if tag != TAG_FUNCTION:
        probed.written(writer, range(1, 17))
    writer.put(tag, 17, None)

    for loader in LOADERS:
        with board(tmp_path, loader) as here:
            everything(here, "a")
            assert told(here)["steps"] == ([] if tag == TAG_FUNCTION else list(range(1, 17)))


def test_a_tag_and_a_kind_of_a_later_version_change_nothing(tmp_path: Path) -> None:
    """As older readers meet what this one knows: a series of which they never heard."""
    answers = []
    for logdir in (tmp_path / "with", tmp_path / "without"):
        writer = begun(logdir, range(1, 17))
        probed.written(writer, range(1, 17))
        later = seal(b"news", Kind.FUNCTION, tag="later", step=16, lineage=writer.lineage)
        if logdir.name == "with":
            writer.put("later", 16, later[:5] + b"\x63" + later[6:])
        answers.append(in_both(logdir, lambda here: everything(here, "a")))
    assert answers[0] == answers[1]


def test_names_are_text_and_nothing_else(tmp_path: Path) -> None:
    places = [Place("layer", name, 1) for name in LAYERS]
    places += [Place("<b>", "=1+1", 1), Place("=kind", "output", 1)]
    probe = [Input(name, (1,), name) for name in LAYERS]
    probed.written(begun(tmp_path, range(1, 4)), range(1, 4), places=places, probe=probe)

    def look(here: Board) -> Any:
        return told(here), here.get("/export.csv", run="a", function=1).get_data(as_text=True)

    found, table = in_both(tmp_path, look)
    assert [(one["kind"], one["name"]) for one in found["places"]] == [
        (one.kind, one.name) for one in places
    ]
    assert [one["name"] for one in found["probe"]] == LAYERS
    assert found["values"] == cells(range(1, 4), places=len(places))
    # The reader of Python 3.10 stops at NUL.
    rows = list(csv.reader(table.replace("\0", "␀").splitlines(keepends=True)))
    assert {"'=HYPERLINK(1)", "'@sum", "'=1+1", "'=kind", "a␀b"} <= {x for row in rows for x in row}
    assert not [x for row in rows for x in row if x.startswith(("=", "+", "@"))]


@pytest.mark.parametrize("loader", LOADERS)
@pytest.mark.parametrize(  # each third byte, and so each bit; all of all of them in the proof
    ("bit", "stride"), [(0, 3), *(pytest.param(n, 1, marks=pytest.mark.prove) for n in range(8))]
)
def test_one_bit_flipped_never_draws_a_wrong_value(
    tmp_path: Path, loader: str, bit: int, stride: int
) -> None:
    data, place, span = small(tmp_path / "whole")
    for at in span[::stride]:
        flipped = bytearray(data)
        flipped[at] ^= 1 << ((at + bit) % 8)
        put_at(tmp_path / "logs" / str(at) / place, flipped)
    said = shown(tmp_path / "logs", loader)
    assert said.total() == len(span[::stride]) > 500 // stride
    # The slow loader ends a file at the first wrong checksum, the fast one reads on.
    assert said["2 and 3, noted" if loader == "fast" else "1, noted"] > 100 // stride
    # Where a length was hit, all that follows in the file is gone, and nobody knows of a probe.
    assert set(said) <= {"", ", noted", "1, noted", "2 and 3, noted", "1 and 2 and 3"}


@pytest.mark.parametrize("loader", LOADERS)
def test_a_file_cut_anywhere_shows_what_is_left(tmp_path: Path, loader: str) -> None:
    data, place, span = small(tmp_path / "whole")
    for at in span:
        put_at(tmp_path / "logs" / str(at) / place, data[:at])
    assert set(shown(tmp_path / "logs", loader)) == {"", "1, noted"}


def put_at(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(data)


def small(logdir: Path) -> tuple[bytes, Path, range]:
    """A log of two messages of one record and of two, its place, and where they are in it."""
    writer = begun(logdir, range(1, 4), layers={"c": 1})
    start = writer.path.stat().st_size
    probed.write(writer, probed.change([1]), probed.change([2, 3], 1))
    data = writer.path.read_bytes()
    return data, writer.path.relative_to(logdir / "a"), range(start, len(data))


def shown(logdir: Path, loader: str) -> Counter[str]:
    """Looks at every run, whose values have to be right, and tells how many show what."""
    right = probed.values(range(1, 4)).transpose(0, 2, 1)
    with board(logdir, loader) as here:
        store = Store(here.provider, fresh_for=3600)
        runs = store.catalog(CALLER).runs

        def look(name: str) -> str:
            found = store.reader(CALLER, runs[name]).function()
            np.testing.assert_array_equal(
                found.values, right[:, :, found.steps - 1][:, : len(found.places)]
            )
            assert found.places in ((), probed.PLACES)
            return " and ".join(map(str, found.steps)) + (", noted" if found.notes else "")

        with ThreadPoolExecutor(8) as threads:
            return Counter(threads.map(look, runs))
