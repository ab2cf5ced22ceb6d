"""What the callback and the recorder cost where nothing is due, on the small CNN.

Each call is timed right after a training step, as it is in a training; a step is that of an own
compiled loop. Timed are the callback's two hooks around a batch, and a recorder's `record`: both
with records so far apart that none comes, nor a past copy.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from itertools import count

import tb_pastnet as pastnet
from benchmarks._models import cnn, tiny
from benchmarks._options import pairs_of, with_pairs
from benchmarks._pairs import after
from benchmarks._recording_ways import NEVER
from benchmarks._rows import Rows
from benchmarks._training import ready, step

BAR = 0.1
"""% of a step that a step without a record may cost."""

CALLS = 5


def main(argv: Sequence[str]) -> int:
    """Prints the figures.

    Returns:
        The exit code: 1 if the bar is missed.
    """
    chosen = with_pairs("idle", __doc__).parse_args(argv)
    task = ready(tiny if chosen.smoke else cnn)
    train, numbers = step(task), count(1)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        recorder = pastnet.Recorder(one, task.model, every=NEVER)
        callback = pastnet.PastNetCallback(other, every=NEVER)
        callback.set_model(task.model)
        callback.on_train_begin()

        def hooks() -> None:
            callback.on_train_batch_begin(0)
            callback.on_train_batch_end(0)

        actions = {
            "PastNetCallback, both hooks of a batch": hooks,
            "Recorder.record": lambda: recorder.record(next(numbers)),
        }
        calls = 1 if chosen.smoke else CALLS
        steps, spent = after(train, list(actions.values()), pairs_of(chosen), calls)
        recorder.close()
        callback.close()
    rows, title = Rows("idle"), "A step with nothing to record"
    print(f"{task.words}")
    for name, of, times in zip(actions, steps, spent, strict=True):
        rows.line(title, name, 1e6 * times, "µs", column="a call")
        rows.line(title, name, 100 * times / of, "%", column="share of a step", bar=BAR)
    return rows.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
