"""Answers of routes are kept for what they were asked."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
from werkzeug.datastructures import MultiDict

from tb_pastnet.numpy import Recorder
from tb_pastnet.reader.catalog import Catalog
from tb_pastnet.reader.log import Log
from tb_pastnet.reader.series_source import LOCAL
from tb_pastnet.serve.http.answers import Answer
from tb_pastnet.serve.http.parameters import Query
from tb_pastnet.serve.routes import ROUTES
from tests.containers import unpack


def test_a_variable_that_two_layers_share_is_answered_for_each(tmp_path: Path) -> None:
    with Recorder(tmp_path, {"first/kernel": lambda: np.ones((2, 3))}, every=1) as recorder:
        recorder.record(1)
    store = Log(tmp_path).store
    run = store.catalog(LOCAL).runs["."]
    [layer] = run.layers
    shared = replace(run, layers=(layer, replace(layer, id="second")))
    store.catalog = lambda _: Catalog({".": shared}, ())  # type: ignore[method-assign]
    for name in ("first", "second"):
        asked = MultiDict({"run": ".", "layer": name})
        given = ROUTES["/layer"](Query(store, LOCAL, asked))
        assert isinstance(given, Answer)
        header, _ = unpack(gzip.decompress(given.body) if given.packed else given.body)
        assert header["layer"] == name
