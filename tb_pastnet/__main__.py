"""`pastnet`, or `python -m tb_pastnet`: checks, reports and exports logs, and shows a demo."""

from __future__ import annotations

import sys

from tb_pastnet.cli.main import main


def run() -> int:
    """Runs the command that the process was started with and returns its exit code."""
    return main(sys.argv[1:], sys.stdout, sys.stderr)


if __name__ == "__main__":
    sys.exit(run())
