"""The development commands; `python3 dev.py --help` lists them. Standard library only."""

import sys

LOWEST, BEYOND = (3, 10), (3, 15)

if not LOWEST <= sys.version_info[:2] < BEYOND:
    sys.exit(
        f"Could not start: expected Python 3.10 to 3.14, got {sys.version.split()[0]} "
        f"({sys.executable}). Call dev.py with one of those, such as python3.11 dev.py."
    )

from tools.commands import main  # noqa: E402  older Pythons must reach the message above

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
