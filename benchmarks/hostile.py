"""What hostile logs cost to read, next to the largest legitimate ones.

Legitimate are a run of 300 layers × 50,000 channels × 1,000 records, of which the largest log has
20, and a base of a million frozen channels with as many records. Both have to be read whole,
without a note. Hostile are those of `tests/security/bombs.py`: each is read in every way. The table
has the processor's seconds of the slowest request, call or command, and the memory of the largest
process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

import tb_pastnet as pastnet
from benchmarks._logs import TINY, Size, network, write_logs
from benchmarks._options import parser
from benchmarks._rows import Rows
from tb_pastnet.core.quantize import ZERO, quantize
from tb_pastnet.core.statistics import STATISTICS
from tb_pastnet.format.block import Block, encode_block
from tb_pastnet.format.description import Description, encode_description
from tb_pastnet.format.tags import TAG_DESCRIPTION, channels_tag, lineage_directory
from tb_pastnet.record.messages import Message, message_event
from tb_pastnet.record.segments import LocalSegments
from tests.security import bombs

TITLE = "Hostile logs"
RUNS = 20
MEMORY = 512.0  # MiB of one process
FROZEN = "delta_norm", "delta_max", "changed", "nonfinite", "nonfinite_count", "trainable"


def write_frozen(folder: Path, layers: int, channels: int, records: int) -> None:
    """Writes a run of frozen kernels, as many channels as are named in each layer."""
    shown, variables = network([channels] * layers)
    described = Description(
        7, 1, "base", 1, "previous", 1, 1.7e9, {}, shown, variables, audited=True
    )
    sealed = encode_description(described, tag=TAG_DESCRIPTION, step=0)
    head = message_event(Message(TAG_DESCRIPTION, 0, sealed), 1.7e9)
    files = LocalSegments(str(folder / "base" / lineage_directory(1, 7)), 1.7e9)
    codes = np.zeros((len(STATISTICS), 16, channels), np.int16)
    codes[[row for row, name in enumerate(STATISTICS) if name in FROZEN]] = ZERO
    for first in range(0, records, 16):
        steps = np.arange(first + 1, first + 17)
        body = b""
        for number, variable in enumerate(variables):
            codes[:2] = quantize(np.random.default_rng(number).uniform(0.5, 2, channels))
            block, tag = Block(steps - 1, steps, steps - 1, codes), channels_tag(variable.id)
            body += message_event(
                Message(tag, first + 16, encode_block(block, tag=tag, lineage=7)), 1.7e9
            )
        files.write(lambda: head, partial(_as_is, body))
    files.close()


def _as_is(body: bytes, _: int) -> bytes:
    return body


def read_whole(rows: Rows, logdir: Path, name: str) -> float:
    """Reads each run once; the seconds of one, for which a note is an error."""
    begin, log = time.process_time(), pastnet.read(logdir)
    for run in log.runs.values():
        run.overview()
        noted = [text for text in run.notes if "in part" in text]
        noted += [
            text for layer in run.layers.values() for text in layer.notes if "in part" in text
        ]
        if noted:
            raise SystemExit(f"{name}: {noted}")
    seconds = time.process_time() - begin
    rows.line(TITLE, name, seconds, "s", column="processor")
    return seconds


def main(argv: Sequence[str]) -> int:
    """Prints the table.

    Returns:
        The exit code: 1 if a bar is missed.
    """
    chosen = parser("hostile", __doc__).parse_args(argv)
    size = TINY if chosen.smoke else Size()
    rows = Rows("hostile")
    with tempfile.TemporaryDirectory() as folder:
        usual, frozen = Path(folder, "usual"), Path(folder, "frozen")
        write_logs(usual, size._replace(runs=1))
        seconds = [RUNS * read_whole(rows, usual, "one run of the usual log")]
        write_frozen(frozen, size.layers, 20 if chosen.smoke else 3_334, size.steps)
        seconds.append(read_whole(rows, frozen, "a base of a million frozen channels"))
    for case in bombs.names()[: 2 if chosen.smoke else None]:
        words = [str(word) for word in case[:2]] + ["lineages"] * case[2]
        command = [sys.executable, "-m", "tests.security.bombs", *words]
        # Its helper processes keep stderr open, and end after it has been waited for.
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        cost, name = json.loads(done.stdout), " × ".join(words)
        # Smaller legitimate logs are no measure.
        most, memory = (None, None) if chosen.smoke else (2 * max(seconds), MEMORY)
        rows.line(TITLE, name, cost["slowest"][1], "s", column="the slowest", bar=most)
        rows.line(TITLE, name, float(cost["rss"]), "MiB", column="memory", bar=memory)
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
