"""Logs read back: runs, layers and their records as arrays and DataFrames.

```
log = pastnet.read("runs")                  Log
run = log.runs["a"]                         Run: steps, layers, overview(), violations, account, …
layer = run.layers["conv1"]                 Layer: norm, relative_delta, states(), masks(), …
bias = layer.variables["bias"]              Variable: the same of any variable
```
"""

from __future__ import annotations

from tb_pastnet.reader.log.function import Function
from tb_pastnet.reader.log.log import Log, read
from tb_pastnet.reader.log.masks import MasksAt
from tb_pastnet.reader.log.named import Named
from tb_pastnet.reader.log.network import Layer, Variable
from tb_pastnet.reader.log.overview import Overview
from tb_pastnet.reader.log.records import Records
from tb_pastnet.reader.log.runs import Lineage, Run
from tb_pastnet.reader.log.violations import Violation

__all__ = [
    "Function",
    "Layer",
    "Lineage",
    "Log",
    "MasksAt",
    "Named",
    "Overview",
    "Records",
    "Run",
    "Variable",
    "Violation",
    "read",
]
