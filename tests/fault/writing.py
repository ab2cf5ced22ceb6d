"""A program that records into a store, and says what was acknowledged."""

from __future__ import annotations

import sys

from tb_pastnet.record import segments
from tests.fault.sinking import change, make_sink, offer


def main(logdir: str, end: str, exit_timeout: str, client: str = "") -> None:
    """Records 40 steps, or more.

    `end`: "kill" goes on until it is killed, "exit" and "late" end, the latter unflushed, and
    "failed" so with 3. `client`: "tensorflow" stands in for gcsfs, "slow" is a store of the tests.
    """
    if client == "tensorflow":
        sys.modules["gcsfs"] = None
        import tensorflow  # noqa: F401
    elif client == "slow":
        from tests import slow_store  # noqa: F401
    segments.PUT_SECONDS = (0.05, 0.4)
    sink, _ = make_sink(logdir, exit_timeout=float(exit_timeout))
    for step in range(1, 1_000_000 if end == "kill" else 41):
        change(sink, step)
        offer(sink, step)
        if step % 5 == 0 and step < 40 and end in ("kill", "exit") and sink.flush(20):
            sys.stdout.write(f"{step}\n")
            sys.stdout.flush()
    if end == "failed":
        sys.exit(3)


if __name__ == "__main__":
    main(*sys.argv[1:])
