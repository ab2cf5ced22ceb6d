"""A log that was damaged: no exception, no wrong value drawn, and the loss is counted."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tensorboard import context
from werkzeug.datastructures import MultiDict

from tb_pastnet.format.frames import read_frames
from tb_pastnet.reader.series_source import RequestContext
from tb_pastnet.reader.state_series import StateSeries
from tb_pastnet.reader.store import Store
from tb_pastnet.serve.http.parameters import Query
from tb_pastnet.serve.routes import index, overview
from tests import event_files as files
from tests.tensorboards import LOADERS, board

pytestmark = pytest.mark.promise("cut_and_flipped")

CALLER = RequestContext(context.RequestContext(), "")
STEPS = range(1, 7)


Whole = tuple[bytes, str, StateSeries]


def _true(logdir: Path) -> StateSeries:
    """What an intact log shows."""
    with board(logdir, "slow") as here:
        store = Store(here.provider)
        found = store.reader(CALLER, store.catalog(CALLER).runs["a"]).state_series("c/kernel")
    assert found.steps.tolist() == list(STEPS)
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """A small file of two blocks a variable, its place in a run, and what is true."""
    logdir = tmp_path_factory.mktemp("whole")
    writer = files.LineageWriter(logdir, layers={"c": 2}, block=3)
    writer.describe(0, copied=True)
    writer.records(STEPS)
    writer.close(6)
    true = _true(logdir)
    place = str(writer.path.relative_to(logdir / "a"))
    return writer.path.read_bytes(), place, true


def flips(data: bytes, bits: range, stride: int = 1) -> Iterator[tuple[str, bytes]]:
    for at in range(0, len(data), stride):
        for bit in bits:
            flipped = bytearray(data)
            # One bit a byte where only one is asked for, another one each time.
            flipped[at] ^= 1 << ((at + bit) % 8)
            yield f"flip{at:05d}.{bit}", bytes(flipped)


def cuts(data: bytes, bits: range) -> Iterator[tuple[str, bytes]]:
    del bits
    for at in range(len(data)):
        yield f"cut{at:05d}", data[:at]


def check_all(logdir: Path, loader: str, true: StateSeries) -> Counter[str]:
    """Looks at every run and tells how many show how much."""
    with board(logdir, loader) as here:
        store = Store(here.provider)
        runs = store.catalog(CALLER).runs
        index(Query(store, CALLER, MultiDict()))

        def check(name: str) -> str:
            run = runs[name]
            account = run.account
            assert account.offered == (
                account.shown
                + account.superseded
                + account.thinned
                + account.dropped
                + account.unreadable
            )
            shown = []
            for layer in run.layers:
                moves = store.reader(CALLER, run).state_series(layer.main)
                at = np.searchsorted(true.steps, moves.steps)
                assert set(moves.steps.tolist()) <= set(STEPS), name
                np.testing.assert_array_equal(moves.delta, true.delta[at], name)
                np.testing.assert_array_equal(moves.before_quiet, true.before_quiet[at], name)
                assert moves.account.shown == len(moves.steps)
                # What the timeline knows of is missed, even where the whole series is gone.
                assert moves.account.offered >= account.shown
                shown.append(f"{len(moves.steps)} records")
            return ", ".join(shown) or "no network"

        with ThreadPoolExecutor(8) as threads:
            said = Counter(threads.map(check, runs))
        overview(Query(store, CALLER, MultiDict({"run": next(iter(runs))})))
        return said


def _damage(
    tmp_path: Path,
    loader: str,
    whole: Whole,
    kind: Callable[[bytes, range], Iterator[tuple[str, bytes]]],
    bits: range,
    beside: Mapping[str, bytes] | None = None,
) -> Counter[str]:
    data, place, true = whole
    for name, damaged in kind(data, bits):
        path = tmp_path / name / place
        path.parent.mkdir(parents=True)
        path.write_bytes(damaged)
        for other, intact in (beside or {}).items():
            path.with_name(other).write_bytes(intact)
    return check_all(tmp_path, loader, true)


def _told(said: Counter[str]) -> str:
    """How many runs show how much."""
    return ", ".join(f"{count:,} show {what}" for what, count in sorted(said.items()))


@pytest.mark.parametrize("loader", LOADERS)
def test_a_bit_flipped_in_each_third_byte_never_draws_a_wrong_value(
    tmp_path: Path, loader: str, whole: Whole
) -> None:
    said = _damage(tmp_path, loader, whole, partial(flips, stride=3), range(1))
    assert said["6 records"] > 0
    assert said["3 records"] > 0


@pytest.mark.prove
@pytest.mark.parametrize("loader", LOADERS)
def test_any_bit_flipped_never_draws_a_wrong_value(
    tmp_path: Path, loader: str, whole: Whole, figure: Callable[..., None]
) -> None:
    said = _damage(tmp_path, loader, whole, flips, range(8))
    bits = 8 * len(whole[0])
    said["nothing"] = bits - said.total()  # TensorBoard reads no event of the file
    figure(f"{loader} loader, each of {bits:,} bits flipped: 0 wrong values; {_told(said)}")


@pytest.mark.parametrize("loader", LOADERS)
def test_a_file_cut_anywhere_shows_what_is_left(
    tmp_path: Path, loader: str, whole: Whole, figure: Callable[..., None]
) -> None:
    said = _damage(tmp_path, loader, whole, cuts, range(1))
    assert set(said) <= {"no network", "0 records", "3 records", "6 records"}
    assert said["3 records"] > 0
    figure(f"{loader} loader, cut at each of {said.total():,} bytes: {_told(said)}")


def test_no_bit_of_an_event_that_describes_the_network_hides_it(
    tmp_path: Path, whole: Whole, figure: Callable[..., None]
) -> None:
    data, place, _ = whole
    events = list(read_frames(io.BytesIO(data)))[:2]
    # What names the plugin stands at the end of an event.
    ends = [event.offset + 12 + len(event.payload) for event in events]
    bits = [(at, bit) for end in ends for at in range(end - 20, end) for bit in range(8)]
    for at, bit in bits:
        flipped = bytearray(data)
        flipped[at] ^= 1 << bit
        path = tmp_path / f"{at}.{bit}" / place
        path.parent.mkdir(parents=True)
        path.write_bytes(flipped)
        path.with_name(f"{path.name}.later").write_bytes(data)  # another segment
    with board(tmp_path, "fast") as here:
        runs = Store(here.provider).catalog(CALLER).runs
    assert len(runs) == len(bits)
    assert {name for name, run in runs.items() if not run.layers} == set()
    figure(f"fast loader, {len(bits)} bits that name the plugin of a network: 0 hide it")


@pytest.mark.prove
@pytest.mark.parametrize("kind", [flips, cuts])
@pytest.mark.parametrize("loader", LOADERS)
def test_whatever_happens_to_a_segment_the_others_are_shown(
    tmp_path: Path,
    loader: str,
    kind: Callable[[bytes, range], Iterator[tuple[str, bytes]]],
    figure: Callable[..., None],
) -> None:
    writer = files.LineageWriter(tmp_path / "whole", layers={"c": 2}, block=3)
    segments: dict[str, bytes] = {}
    for steps in (range(1, 4), range(4, 7)):
        writer.describe(steps[0] - 1, copied=True)
        writer.records(steps)
        segments[writer.path.name] = writer.path.read_bytes()
        writer.segment += 1
    first, *others = segments
    true = _true(tmp_path / "whole")
    place = str(writer.path.relative_to(tmp_path / "whole" / "a").with_name(first))
    beside = {name: segments[name] for name in others}
    whole = (segments[first], place, true)
    said = _damage(tmp_path / "damaged", loader, whole, kind, range(1), beside)
    # The fast loader skips the checksum of an event, and takes the plugin's name of a whole series
    # from its first event: where that is flipped the series is no longer ours, in no segment.
    more = set(said) - {"3 records", "6 records"}
    assert not more or (loader == "fast" and kind is flips)
    assert said["3 records"] + said["6 records"] > 0.7 * said.total()
    figure(
        f"{loader} loader, one of two segments damaged at each of its {said.total():,} bytes "
        f"({kind.__name__}): {_told(said)}"
        + ("; its first events name the plugin of both" if more else ""),
        met=not more,
    )
