"""The rooms without a framework bring none."""

from __future__ import annotations

import subprocess
import sys

NEUTRAL = """
import importlib, importlib.util, pkgutil, sys
# Modules that import numba are loaded only where it is installed.
kernels = importlib.util.find_spec("numba") is not None
with_numba = {"tb_pastnet.core.compiling", "tb_pastnet.core.network_kernel", "tb_pastnet.core.fingerprint_kernel"}
for room in ("core", "format", "record", "reader"):
    package = importlib.import_module(f"tb_pastnet.{room}")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if kernels or module.name not in with_numba:
            importlib.import_module(module.name)
print(sorted({"tensorflow", "keras", "torch", "jax"} & set(sys.modules)))
"""


def test_no_module_of_the_neutral_rooms_brings_a_framework():
    done = subprocess.run(
        [sys.executable, "-c", NEUTRAL], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")
