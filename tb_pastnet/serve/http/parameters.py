"""The parameters of a request, checked: numbers are parsed strictly, names only looked up.

All of these raise a `Failure` if a parameter is missing or invalid.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cached_property

from werkzeug.datastructures import MultiDict

from tb_pastnet.core import channel_states
from tb_pastnet.format.description import LayerEntry, VariableEntry
from tb_pastnet.format.limits import MAX_STEP
from tb_pastnet.reader.catalog import Catalog
from tb_pastnet.reader.figures import StepSpan
from tb_pastnet.reader.series_source import RequestContext
from tb_pastnet.reader.store import RunReader, Store
from tb_pastnet.serve.http.web import bad_request, not_found, shown

Arguments = MultiDict[str, str]

MOST_COLUMNS = 4096
COLUMNS = 256
FEWEST_RUNS, MOST_RUNS = 2, 32
MOST_LISTED = 256
"""Runs whose findings one request may ask for."""

_WHOLE = re.compile(r"[+-]?[0-9]{1,16}", re.ASCII)
_NUMBER = re.compile(r"[0-9]*\.?[0-9]+([eE][+-]?[0-9]{1,3})?", re.ASCII)


class Query:
    """A request for data: its parameters, store and context."""

    def __init__(self, store: Store, context: RequestContext, arguments: Arguments) -> None:
        self.store = store
        self.context = context
        self.arguments = arguments

    @cached_property
    def catalog(self) -> Catalog:
        """The current catalog of runs."""
        return self.store.catalog(self.context)

    def threshold(self) -> float:
        """The relative delta `th` under which a channel counts as quiet."""
        text = self.arguments.get("th")
        if text is None:
            return channel_states.THRESHOLD
        value = float(text) if _NUMBER.fullmatch(text) else math.nan
        if not math.isfinite(value):
            raise bad_request(
                f"Could not use the threshold: expected th to be a number from 0 on, got "
                f"{shown(text)}. Leave it out for {channel_states.THRESHOLD:g}."
            )
        return value

    def integer(self, name: str, *, least: int, most: int) -> int | None:
        """A whole number; None if it is left out."""
        text = self.arguments.get(name)
        if text is None:
            return None
        value = int(text) if _WHOLE.fullmatch(text) else None
        if value is None or not least <= value <= most:
            raise bad_request(
                f"Could not use {name}: expected a whole number from {least} to {most}, got "
                f"{shown(text)}. Correct it or leave it out."
            )
        return value

    def columns(self) -> int:
        """How many columns there may be, `cols`."""
        return self.integer("cols", least=1, most=MOST_COLUMNS) or COLUMNS

    def step(self, name: str) -> int | None:
        """A step; None if it is left out."""
        return self.integer(name, least=-MAX_STEP, most=MAX_STEP)

    def span(self) -> StepSpan:
        """The steps `first` and `last`, both included; None if one is left out."""
        first, last = self.step("first"), self.step("last")
        if first is not None and last is not None and last < first:
            raise bad_request(
                f"Could not use last: expected a step from first={first} on, got {last}. Swap them."
            )
        return StepSpan(first, last)

    def run(self, by: str = "run") -> RunReader:
        """The run named by `run`, or by another parameter."""
        return self._reader(self.catalog, self._needed(by))

    def runs(self, least: int = FEWEST_RUNS, most: int = MOST_RUNS) -> list[RunReader]:
        """The runs named by `run`, a parameter for each of them, in that order."""
        catalog, names = self.catalog, self.arguments.getlist("run")
        if not least <= len(names) <= most:
            raise bad_request(
                f"Could not choose runs: expected the parameter 'run' {least} to {most} "
                f"times, got it {len(names)} times. Use a separate parameter for each run."
            )
        return [self._reader(catalog, name) for name in names]

    def _reader(self, catalog: Catalog, name: str) -> RunReader:
        if name not in catalog.runs:
            raise not_found(
                f"Could not find the run: expected one of the {len(catalog.runs)} in the index, "
                f"got {shown(name)}. It may not be loaded yet."
            )
        return self.store.reader(self.context, catalog.runs[name])

    def layer(self) -> LayerEntry:
        """The layer of the run named by `layer`."""
        run = self.run().run
        name = self._needed("layer")
        if name in run.layers_by_id:
            return run.layers_by_id[name]
        raise not_found(
            f"Could not find the layer: expected one of the {len(run.layers)} of run "
            f"{shown(run.name)}, got {shown(name)}. The index lists them."
        )

    def choice(self, name: str, words: Sequence[str]) -> str:
        """One of a few words, the first of them by default."""
        text = self.arguments.get(name, words[0])
        if text not in words:
            raise bad_request(
                f"Could not use {name}: expected one of {', '.join(words)}, got {shown(text)}. "
                f"Correct it or leave it out for {words[0]}."
            )
        return text

    def variable(self) -> VariableEntry:
        """The variable of the layer named by `variable`, or its main one."""
        run, layer = self.run().run, self.layer()
        name = self.arguments.get("variable", layer.main)
        if name not in layer.variables:
            raise not_found(
                f"Could not find the variable: expected one of the {len(layer.variables)} of layer "
                f"{shown(layer.id)}, got {shown(name)}. The index lists them."
            )
        return run.variables[name]

    def channel(self) -> int:
        """The channel of the variable numbered by `channel`."""
        variable = self.variable()
        self._needed("channel")
        index = self.step("channel")
        if index is None or not 0 <= index < variable.channels:
            raise not_found(
                f"Could not find the channel: expected 0 to {variable.channels - 1} of "
                f"{shown(variable.id)}, got {index}. The index has their number."
            )
        return index

    def _needed(self, name: str) -> str:
        if name not in self.arguments:
            raise bad_request(
                f"Could not answer: expected the parameter {name!r}, got none. "
                "http_api.md lists the parameters of each route."
            )
        return self.arguments[name]
