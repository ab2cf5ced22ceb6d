"""Many layers, many channels, many records: what is sent, what a call carries, how long it takes."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks import _boards, page
from benchmarks._logs import Size, write_logs
from tests.tensorboards import LOADERS, Board, board

pytestmark = [pytest.mark.promise("large_networks"), pytest.mark.prove]

MEGABYTE = 1_000_000
MOST_A_CALL = 128 << 20
"""Bytes that a call of TensorBoard's data provider may carry: half of what it can."""

SIZES = {
    "10,000 layers": Size(1, 10_000, 40_000, 16),
    "1,000,000 channels": Size(1, 250, 1_000_000, 32),
    "1,000 steps × 50,000 channels": Size(1, 300, 50_000, 1_000),
}
PAINTED = {"1,000,000 channels": 1000, "1,000 steps × 50,000 channels": 2000}
"""Milliseconds until the first picture, from the click on the tab."""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Writes a log when it is first asked for."""

    @cache
    def write(name: str) -> Path:
        folder = tmp_path_factory.mktemp("large")
        write_logs(folder, SIZES[name], variants=1)
        return folder

    return write


class Weighed:
    """A data provider whose answers are weighed."""

    def __init__(self, provider: Any) -> None:
        self.calls: list[int] = []
        self._read = provider.read_tensors
        provider.read_tensors = self.read

    def read(self, *args: Any, **more: Any) -> Any:
        found = self._read(*args, **more)
        series = (one for by_tag in found.values() for one in by_tag.values())
        self.calls.append(sum(event.numpy.nbytes for one in series for event in one))
        return found


def ask_everything(here: Board) -> bytes:
    """All that a page asks for; the index as it is sent."""
    index = here.get("/index", headers={"Accept-Encoding": "gzip"})
    (network,) = here.json("/index")["networks"]
    widest = max(network["layers"], key=lambda layer: layer["channels"])["id"]
    _, arrays = here.arrays("/overview", run="run_00", cols=128)
    assert (arrays["shares"].sum(axis=2) == 255).all()
    _, arrays = here.arrays("/records", run="run_00")
    assert arrays["counts"].sum(axis=2)[:, -1].tolist() == [
        layer["channels"] for layer in network["layers"]
    ]
    here.arrays("/layer", run="run_00", layer=widest)
    return index.get_data()


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("loader", LOADERS)
def test_no_call_is_large_and_the_index_is_small(
    logs: Callable[[str], Path], loader: str, name: str, figure: Callable[..., None]
) -> None:
    with board(logs(name), loader) as here:
        weighed = Weighed(here.provider)
        index = ask_everything(here)
    most, plain = max(weighed.calls), len(gzip.decompress(index))
    assert len(index) < 2 * MEGABYTE
    assert most < MOST_A_CALL
    figure(
        f"{name}, {loader} loader: index {len(index) / MEGABYTE:.2f} MB as it is sent "
        f"({plain / MEGABYTE:.1f} unpacked), {len(weighed.calls)} calls of at most "
        f"{most / 2**20:.0f} MiB"
    )


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


@pytest.mark.alone
@pytest.mark.parametrize("name", SIZES)
def test_the_first_picture(
    logs: Callable[[str], Path], name: str, stack: ExitStack, figure: Callable[..., None]
) -> None:
    address = stack.enter_context(_boards.board(logs(name))).address
    index = page.read_to_the_end(address)
    layers = index["networks"][0]["layers"]
    assert len(layers) == SIZES[name].layers
    page.drive(address, rounds=1, layer=layers[0]["id"], inputs=0)
    found = page.drive(address, rounds=3, layer=layers[0]["id"], inputs=0)
    took = min(one["strips"] for one in found["tab"])
    assert took > 0
    figure(
        f"{name}: first picture {took:.0f} ms after the click on the tab, the server warm",
        met=took <= PAINTED.get(name, took),
    )
