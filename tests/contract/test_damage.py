"""A log that was damaged: no exception, no wrong value drawn, and the loss is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tensorboard import context

from tb_pastnet.serve.routes.runs import index_impl, overview_impl
from tb_pastnet.serve.store.movement import Movement
from tb_pastnet.serve.store.source import Caller
from tb_pastnet.serve.store.store import Store
from tests import event_files as files
from tests.tensorboards import LOADERS, board

CALLER = Caller(context.RequestContext(), "")
STEPS = range(1, 7)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, str, Movement]:
    """A small file of two blocks a variable, its place in a run, and what is true."""
    logdir = tmp_path_factory.mktemp("whole")
    writer = files.LineageWriter(logdir, layers={"c": 2}, block=3)
    writer.describe(0)
    writer.records(STEPS)
    writer.close(6)
    with board(logdir, "slow") as here:
        store = Store(here.provider)
        run = store.catalog(CALLER).runs["a"]
        true = store.movement(CALLER, run, "c/kernel")
    assert true.steps.tolist() == list(STEPS)
    place = str(writer.path.relative_to(logdir / "a"))
    return writer.path.read_bytes(), place, true


def flips(data: bytes, bits: range) -> Iterator[tuple[str, bytes]]:
    for at in range(len(data)):
        for bit in bits:
            flipped = bytearray(data)
            # One bit a byte where only one is asked for, another one each time.
            flipped[at] ^= 1 << ((at + bit) % 8)
            yield f"flip{at:05d}.{bit}", bytes(flipped)


def cuts(data: bytes, bits: range) -> Iterator[tuple[str, bytes]]:
    del bits
    for at in range(len(data)):
        yield f"cut{at:05d}", data[:at]


def check_all(logdir: Path, loader: str, true: Movement) -> Counter[str]:
    """Looks at every run and tells how many show how much."""
    with board(logdir, loader) as here:
        store = Store(here.provider)
        runs = store.catalog(CALLER).runs
        index_impl(store, CALLER, {})

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
                moves = store.movement(CALLER, run, layer.main)
                at = np.searchsorted(true.steps, moves.steps)
                assert set(moves.steps.tolist()) <= set(STEPS), name
                np.testing.assert_array_equal(moves.delta, true.delta[at], name)
                np.testing.assert_array_equal(moves.unsettled, true.unsettled[at], name)
                assert moves.account.shown == len(moves.steps)
                # What the timeline knows of is missed, even where the whole series is gone.
                assert moves.account.offered >= account.shown
                shown.append(f"{len(moves.steps)} records")
            return ", ".join(shown) or "no network"

        with ThreadPoolExecutor(8) as threads:
            said = Counter(threads.map(check, runs))
        overview_impl(store, CALLER, {"run": next(iter(runs))})
        return said


def _damage(
    tmp_path: Path,
    loader: str,
    whole: tuple[bytes, str, Movement],
    kind: Callable[[bytes, range], Iterator[tuple[str, bytes]]],
    bits: range,
) -> Counter[str]:
    data, place, true = whole
    for name, damaged in kind(data, bits):
        path = tmp_path / name / place
        path.parent.mkdir(parents=True)
        path.write_bytes(damaged)
    return check_all(tmp_path, loader, true)


@pytest.mark.parametrize("loader", LOADERS)
def test_a_bit_flipped_in_any_byte_never_draws_a_wrong_value(
    tmp_path: Path, loader: str, whole: tuple[bytes, str, Movement]
) -> None:
    said = _damage(tmp_path, loader, whole, flips, range(1))
    assert said["6 records"] > 0
    assert said["3 records"] > 0


@pytest.mark.prove
@pytest.mark.parametrize("loader", LOADERS)
def test_any_bit_flipped_never_draws_a_wrong_value(
    tmp_path: Path, loader: str, whole: tuple[bytes, str, Movement]
) -> None:
    _damage(tmp_path, loader, whole, flips, range(8))


@pytest.mark.parametrize("loader", LOADERS)
def test_a_file_cut_anywhere_shows_what_is_left(
    tmp_path: Path, loader: str, whole: tuple[bytes, str, Movement]
) -> None:
    said = _damage(tmp_path, loader, whole, cuts, range(1))
    assert set(said) <= {"no network", "0 records", "3 records", "6 records"}
    assert said["3 records"] > 0
