"""The Network view of a long run: the part that is zoomed into is shown record by record."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.browser import clean
from tests.e2e.conftest import BROWSED, known, tensorboard, wait
from tests.event_files import LineageWriter, codes, freeze

LAYER, CHANNELS, RECORDS = "conv1", 8, 6000
FROZEN = 5  # the column of the table


@pytest.mark.parametrize("loader", BROWSED)
def test_numbers_are_those_of_single_records_where_it_is_zoomed_into(
    tmp_path: Path, loader: str
) -> None:
    logdir = tmp_path / "logs"
    steps = range(1, RECORDS + 1)
    values = codes(steps, CHANNELS)
    # Half of the channels are frozen at each odd step.
    freeze(values, slice(0, None, 2), slice(0, CHANNELS // 2))
    writer = LineageWriter(logdir, "long", layers={LAYER: CHANNELS})
    writer.describe(0)
    writer.records(steps, {f"{LAYER}/kernel": values})
    writer.close(RECORDS)
    here = (3001, 3002, 3003, 3004)
    with tensorboard(logdir, loader=loader) as tab:
        wait(lambda: known(tab, 1, RECORDS), "all records")
        zoomed = clean(tab.drive("network", steps=here, hash={"z": "2990~3010"}))
        whole = clean(tab.drive("network", steps=here))
    shown = [int(zoomed[str(step)]["rows"][0][FROZEN].split(" ")[0]) for step in here]
    assert shown == [CHANNELS // 2 * (step % 2) for step in here]
    # Among all steps they lie in one column, or in two neighbours.
    assert len({str(whole[str(step)]["rows"]) for step in here}) <= 2
