"""Overlaps in Python: their numbers are those of the routes, bit for bit."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from werkzeug.datastructures import MultiDict

import tb_pastnet as pastnet
from tb_pastnet.errors import InvalidArgument, UnknownName
from tb_pastnet.reader import notes
from tb_pastnet.reader.file_source import FileSource
from tb_pastnet.reader.mask_overlap import REASONS
from tb_pastnet.reader.series_source import LOCAL
from tb_pastnet.reader.store import Store
from tb_pastnet.serve import routes
from tb_pastnet.serve.http.parameters import Query
from tests.containers import unpack
from tests.golden.kept_logs import FOLDER

REASONS_IN: dict[str, set[str | None]] = {
    "sample": {None},
    "oracle": {None, "layers", "origin", "unknown"},
    "stalled": {None, "no record"},
    "messages": {None, "no record", "unknown"},
}
KINDS = list(product(("weights", "channels"), ("kept", "trainable")))


def served(store: Store, route: Any, asked: list[tuple[str, Any]]) -> bytes:
    body: bytes = route(Query(store, LOCAL, MultiDict([(k, str(v)) for k, v in asked]))).body
    return body


def exact(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


@pytest.mark.parametrize("name", REASONS_IN)
def test_its_numbers_are_those_of_the_routes(name: str) -> None:
    log, store = pastnet.read(FOLDER / name), Store(FileSource(FOLDER / name))
    reasons = set()
    for first, second in product(log, log):
        for (unit, kind), step in product(KINDS, (None, 3, 9)):
            pair = log.overlap(first, second, unit=unit, kind=kind, step=step)
            asked = [("unit", unit), ("mask", kind)]
            at = [] if step is None else [("step", step)]
            body = json.loads(
                served(store, routes.overlap, [("run", first), ("run", second), *asked, *at])
            )
            [right] = body["pairs"]
            assert [exact(pair.overlap), exact(pair.chance), pair.reason, pair.comparable] == [
                right[key] for key in ("overlap", "chance", "reason", "comparable")
            ]
            assert list(pair.steps) == [run["step"] for run in body["runs"]]
            assert pair.notes == {note["text"]: note["count"] for note in body["notes"]}
            assert [len(pair.layers), len(pair.unmatched)] == [right["layers"], right["unmatched"]]
            last = max((own or 0 for own in pair.steps), default=0) if step is None else step
            header, arrays = unpack(
                served(
                    store,
                    routes.overlap_layers,
                    [("run", first), ("other", second), *asked, ("at", last)],
                )
            )
            assert [*pair.layers, *pair.unmatched] == [*header["layers"], *header["unmatched"]]
            own = np.array(list(pair.layers.values())).reshape(-1, 2)
            np.testing.assert_array_equal(own, np.hstack([arrays["overlap"], arrays["chance"]]))
            reasons.add(pair.reason)
            assert ("not comparable" in repr(pair)) == (not pair.comparable)
    assert reasons == REASONS_IN[name]


def test_each_reason_has_its_words() -> None:
    assert {None, *REASONS} == set().union(*REASONS_IN.values())


def test_it_shows_what_it_compares() -> None:
    sample, shown = pastnet.read(FOLDER / "sample"), pastnet.read(FOLDER / "shown")
    pair = sample.overlap("dense", "ticket", step=5)
    assert repr(pair) == "Overlap('dense', 'ticket', kept weights: 0.62, by chance 0.56, 1 layer)"
    assert (pair.overlap, pair.layers["conv1"].overlap, pair.unmatched) == (0.625, 0.625, ())
    assert repr(shown.overlap("dense", "pruned", unit="channels", kind="trainable")) == (
        "Overlap('dense', 'pruned', trainable channels: not comparable, as far as is known, they "
        "didn't start from the same weights)"
    )


def test_channels_along_other_axes_are_not_compared(tmp_path: Path) -> None:
    """As those of fused experts, whose logs once had the last axis."""
    for name, axis in ("now", (0, 1)), ("once", -1):
        weights = {"experts/kernel": lambda: np.ones((3, 4, 4), np.float32)}
        axes = {"experts/kernel": axis}
        with pastnet.numpy.Recorder(tmp_path / name, weights, every=1, channel_axis=axes) as own:
            own.record(1)
    log = pastnet.read(tmp_path)
    for unit in ("weights", "channels"):
        pair = log.overlap("now", "once", unit=unit)
        # Fingerprints are those of channels: the origins of equal values differ, too.
        assert (pair.comparable, pair.notes) == (False, {notes.OTHER_AXES: 1})
        assert not log.overlap("now", "now", unit=unit).notes


def test_wrong_arguments_are_errors() -> None:
    log = pastnet.read(FOLDER / "sample")
    with pytest.raises(UnknownName, match="Could not find run 'dens': expected one of dense"):
        log.overlap("dens", "ticket")
    for given, text in (
        ({"unit": "weight"}, "expected unit= 'weights' or 'channels', got 'weight'. Leave it out"),
        ({"kind": []}, r"expected kind= 'kept' or 'trainable', got \[\]. Leave it out for 'kept'"),
        ({"step": 2**63}, "expected step= a whole number of 64 bits, got 9223372036854775808"),
        ({"step": 2.5}, "expected step= a whole number of 64 bits, got 2.5. Leave it out for"),
    ):
        with pytest.raises(InvalidArgument, match=f"Could not compare masks: {text}"):
            log.overlap("dense", "ticket", **given)  # type: ignore[arg-type]
