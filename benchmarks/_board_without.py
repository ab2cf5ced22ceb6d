"""TensorBoard with a plugin left out: _board_without.py NAME FLAG …; "" leaves out none."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from typing import Any

from tensorboard import default, main

GROUP = "tensorboard_plugins"


def others(name: str) -> list[Any]:
    """The plugins of installed packages but one; that isn't imported."""
    return [one.load() for one in entry_points(group=GROUP) if one.name != name]


if __name__ == "__main__":
    left_out = sys.argv.pop(1)
    default.get_dynamic_plugins = lambda: others(left_out)
    main.run_main()
