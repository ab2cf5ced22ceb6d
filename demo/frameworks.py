"""What can train the demo: the module that does, what it needs, and where its runs go."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo import FIRST, NAMES

PIP = {"sklearn": "scikit-learn"}
"""What pip calls a package, where that isn't the name that it is imported by."""


@dataclass(frozen=True)
class Framework:
    """A framework that trains the runs.

    Attributes:
        name: as on the command line.
        module: has a function `trained`.
        packages: those that it imports.
        logdir: where its runs go unless another directory is named.
        runs: those that it can train.
    """

    name: str
    module: str
    packages: tuple[str, ...]
    logdir: Path
    runs: Sequence[str] = FIRST

    def check(self, names: Sequence[str]) -> None:
        """Looks whether it can train these runs here.

        Raises:
            ValueError: One of the runs is trained by Keras alone.
            ModuleNotFoundError: A package isn't installed.
        """
        for name in names:
            if name not in self.runs:
                raise ValueError(
                    f"Could not train {name!r} with {self.name}: expected some of "
                    f"{', '.join(self.runs)}, got {name}. Name these, or take --framework keras."
                )
        needed = (*self.packages, "sklearn")
        found = importlib.util.find_spec
        missing = [PIP.get(name, name) for name in needed if found(name) is None]
        packages = ", ".join(PIP.get(name, name) for name in needed)
        if missing:
            raise ModuleNotFoundError(
                f"Could not train the demo with {self.name}: expected the packages {packages}, got "
                f"none called {', '.join(missing)}. Install with "
                f"`pip install {' '.join(missing)}`, or call `python3 dev.py demo --framework "
                f"{self.name}`, which brings what it needs."
            )

    def load(self) -> Any:
        """Imports the module."""
        return importlib.import_module(self.module)


FRAMEWORKS = {
    framework.name: framework
    for framework in (
        Framework("keras", "demo.keras_runs", ("tensorflow", "keras"), Path("runs/demo"), NAMES),
        Framework("torch", "demo.torch_runs", ("torch",), Path("runs/demo_torch")),
        Framework("jax", "demo.jax_runs", ("jax", "optax"), Path("runs/demo_jax")),
    )
}
