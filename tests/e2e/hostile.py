"""A log in which every name wants to be something else."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tb_pastnet.core.violation import Violation
from tb_pastnet.format.function_change import Input, Place
from tests import probed
from tests.event_files import LineageWriter, codes, hold

RUNS = (
    "<script>alert(1)<",
    "\"quoted\" & 'single'",
    "עברית مرحبا",
    "a&b=c#d%2e%2e",
    "__proto__",
    "\u202egnp.exe",
    "<b>/of a folder",
    "y" * 200,
)
LAYERS = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "\"quoted'`${1+1}`&amp;",
    "..",
    "../../etc/passwd",
    "%2e%2e%2f",
    "a\0b",
    "\u202egnp.exe",
    "עברית/مرحبا",
    "__proto__",
    "constructor/toString",
    "tab\tnew\nline",
    " ",
    "=HYPERLINK(1)",
    "x" * 10_000,
)
OUTPUTS = ("<svg onload=alert(1)>", "__proto__")
INPUTS = ("<iframe src=javascript:alert(1)>", "prototype\0", "\u202etupni")
NOTE = "<b onmouseover=alert(1)>of the writer</b>"
CAUSE = "<i>solar</i> flare"
STEPS = range(1, 9)
RECORDS = len(RUNS) * len(STEPS)
KEPT = np.arange(18) > 4


def hostile(logdir: Path) -> None:
    """Writes every run: masks, violations and a probe in each."""
    kernels = [f"{layer}/kernel" for layer in LAYERS]
    for at, run in enumerate(RUNS):
        writer = LineageWriter(
            logdir, run, lineage=0x3000 + at, layers=dict.fromkeys(LAYERS, 2), block=8
        )
        writer.describe(0)
        writer.masks(2, {("kept", kernel): np.roll(KEPT, at) for kernel in kernels})
        writer.violations(5, [Violation(one, 1, 4, 6, 1, 9, 0.5, CAUSE) for one in kernels])
        held = hold(codes(STEPS, 2, at), slice(1, None), np.roll(KEPT, at).reshape(9, 2))
        writer.records(STEPS, dict.fromkeys(kernels, held), notes={NOTE: 2})
        places = [*(Place("layer", name, 4) for name in LAYERS)]
        places += [Place("output", name, 4) for name in OUTPUTS]
        probe = [Input(name, (4, 2), "float32", "5a0c") for name in INPUTS]
        probed.write(writer, probed.change(STEPS, places=places, probe=probe, seed=at))
        writer.close(STEPS[-1], notes={NOTE: 2})
