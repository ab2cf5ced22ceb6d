"""What Cockpit costs at each step; runs in the environment of the peer.

    python benchmarks/_peer_cockpit.py NETWORK PAIRS

Prints JSON: a share of the step for each pair. Tracked is what is nearest to our statistics: for
each variable the norm of its update, and its distance from the initial values.
"""

from __future__ import annotations

import importlib
import json
import sys
from itertools import count
from typing import Any

from benchmarks._pairs import interleaved
from benchmarks._torch_models import TORCH_TASKS


def main(network: str, pairs: int) -> int:
    """Measures.

    Returns:
        The exit code.
    """
    cockpit: Any = importlib.import_module("cockpit")
    quantities: Any = importlib.import_module("cockpit.quantities")
    tasks = [TORCH_TASKS[network]() for _ in range(2)]
    _, _, stock = tasks[0].training()
    model, x, y = tasks[1]
    optimizer, loss, _ = tasks[1].training()
    always = importlib.import_module("cockpit.utils.schedules").linear(1)
    kinds = quantities.UpdateSize, quantities.Distance
    panel = cockpit.Cockpit(model.parameters(), [kind(track_schedule=always) for kind in kinds])
    steps = count()

    def tracked() -> None:
        at = next(steps)
        optimizer.zero_grad()
        value = loss(model(x), y)
        with panel(at, info={"batch_size": len(x), "loss": value, "optimizer": optimizer}):
            value.backward(create_graph=panel.create_graph(at))
        optimizer.step()

    times = interleaved(stock, tracked, pairs=pairs, calls=1)
    print(json.dumps((times[1] / times[0] - 1).tolist()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
