"""Public names that are loaded when they are first used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from importlib.util import find_spec
from typing import Any

EXTRAS = {"tensorflow": "tensorflow", "keras": "tensorflow", "jax": "jax", "torch": "torch"}
"""The extra that installs each framework."""


def installed(*packages: str) -> bool:
    """Whether all of some packages are there, without importing any."""
    try:
        return all(find_spec(name) for name in packages)
    except ImportError:  # a finder that hides it
        return False
    except ValueError:  # what a test replaces a package with may have no spec
        return True


def _instead(package: str) -> str:
    """Where the names of a framework are that the program itself uses."""
    used = [name for name in ("torch", "jax") if name in sys.modules]
    rooms = " or ".join(f"tb_pastnet.{name}" for name in used)
    return f". For what this program imports, see {rooms}" if used and "." not in package else ""


def names(
    package: str, homes: Mapping[str, str], needs_nothing: Collection[str] = ()
) -> Callable[[str], Any]:
    """Makes the `__getattr__` of a package.

    Args:
        package: its full name.
        homes: the module that has each public name, or is it.
        needs_nothing: names that work without a framework.

    Returns:
        A function of the name. It raises AttributeError for others, and ImportError where the
        framework is missing.

    Example:
        >>> get = names("tb_pastnet", {"PastNetError": "tb_pastnet.errors"})
        >>> get("PastNetError").__name__
        'PastNetError'
    """

    def get(name: str) -> Any:
        if name not in homes:
            text = f"module {package!r} has no attribute {name!r}"
            # With these Python names the nearest.
            raise AttributeError(text, name=name, obj=sys.modules.get(package))
        try:
            module = importlib.import_module(homes[name])
        except ModuleNotFoundError as error:
            if name not in needs_nothing and error.name in EXTRAS:
                raise ImportError(
                    f"Could not load {package}.{name}: expected {error.name} to be installed, got "
                    f"none. Run: pip install tb-pastnet[{EXTRAS[error.name]}]{_instead(package)}"
                ) from error
            raise
        value = module if homes[name].endswith("." + name) else getattr(module, name)
        setattr(importlib.import_module(package), name, value)
        return value

    return get
