"""What tfmot's PruningSummaries costs at each step; runs in the environment of the peer.

    python benchmarks/_peer_summaries.py NETWORK PAIRS

Prints JSON: a share of the step of the pruned network for each pair.
"""

from __future__ import annotations

import json
import sys
import tempfile
from itertools import count

from benchmarks._models import ALL_TASKS, tiny
from benchmarks._pairs import after
from benchmarks._peer_tfmot import NEVER, pruned, sparsity, tf_keras


def main(network: str, pairs: int) -> int:
    """Measures.

    Returns:
        The exit code.
    """
    task = {**ALL_TASKS, "tiny": tiny}[network](tf_keras)
    model, train = pruned(task, NEVER)
    epochs = count(1)
    with tempfile.TemporaryDirectory() as folder:
        summaries = sparsity.PruningSummaries(folder)
        summaries.set_model(model)
        steps, spent = after(train, [lambda: summaries.on_epoch_begin(next(epochs))], pairs)
    print(json.dumps((spent[0] / steps[0]).tolist()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
