"""A log directory, read back."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

from tb_pastnet.core.findings import Finding
from tb_pastnet.core.states import THRESHOLD
from tb_pastnet.reader.file_source import FileSource
from tb_pastnet.reader.named import Named
from tb_pastnet.reader.run import Run
from tb_pastnet.reader.run_findings import findings_of
from tb_pastnet.reader.run_reader import CALLER, Reader
from tb_pastnet.reader.store import Store
from tb_pastnet.reader.tables import stacked, table

if TYPE_CHECKING:
    from pandas import DataFrame

CEILING = 1 << 30
"""Bytes of decoded records that are kept for when they are asked for again."""


class Log:
    """All runs of a log directory, as they were when it was opened.

    Args:
        logdir: the directory.

    Attributes:
        logdir: the directory.
        runs: by name. Any end of a name that fits only one finds it.
        warnings: what concerns no single run, such as files that can't be opened.

    Raises:
        UnreadableLog: it is no directory.
    """

    def __init__(self, logdir: str | os.PathLike[str]) -> None:
        self.logdir = os.fspath(logdir)
        source = FileSource(logdir)
        store = Store(source, CEILING, fresh_for=math.inf)
        catalog = store.catalog(CALLER)
        self.store, self._catalog = store, catalog
        runs = {name: Run(Reader(store, run)) for name, run in catalog.runs.items()}
        self.runs: Named[Run] = Named(runs, "run", "the log directory")
        unopened = [f"Files that can't be opened: {source.unopened}"] if source.unopened else []
        self.warnings: tuple[str, ...] = (*catalog.warnings, *unopened)

    def findings(self, threshold: float = THRESHOLD) -> tuple[Finding, ...]:
        """What there is to know of all runs, what matters most first. Reads all layers.

        Args:
            threshold: the relative delta under which a channel is quiet.

        Returns:
            Those of each run, see `Run.findings`, and what runs compared show, such as which one
            freezes first. Each has a kind, a sentence as `text`, and the step of its record.
        """
        runs = list(self._catalog.runs.values())
        return tuple(findings_of(self.store, CALLER, runs, threshold))

    def to_dataframe(self, threshold: float = THRESHOLD) -> DataFrame:
        """The overviews of all runs, a row for each run, record and layer.

        Args:
            threshold: the relative delta under which a channel is quiet.

        Returns:
            Column run (categorical), then those of `Overview.to_dataframe`. Empty where there is
            no run.

        Raises:
            ImportError: pandas isn't installed.
        """
        tables = {name: run.to_dataframe(threshold) for name, run in self.runs.items()}
        return stacked(tables, "run") if tables else table({})

    def __repr__(self) -> str:
        lines = [f"Log({self.logdir!r}, {len(self.runs)} runs)"]
        lines += [f"  {run!r}" for run in self.runs.values()]
        return "\n".join([*lines, *(f"  warning: {one}" for one in self.warnings)])


def read(logdir: str | os.PathLike[str]) -> Log:
    """Opens a log directory, or one above several. TensorFlow and TensorBoard needn't run.

    All that the tab shows is here as arrays, with the same account of records: what is damaged is
    counted and left out. Opening reads every file once and keeps no record in memory; what is
    written later shows when the log is opened again.

    Args:
        logdir: a local directory.

    Returns:
        The log.

    Raises:
        UnreadableLog: it is no directory.

    Example:
        >>> import tempfile
        >>> import tb_pastnet as pastnet
        >>> with tempfile.TemporaryDirectory() as logdir:
        ...     len(pastnet.read(logdir).runs)
        0
    """
    return Log(logdir)
