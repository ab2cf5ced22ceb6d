"""Which routes there are. They are documented in `http_api.md`, with a sample answer of each."""

from __future__ import annotations

from collections.abc import Callable

from tb_pastnet.reader.source import Caller
from tb_pastnet.reader.store import Store
from tb_pastnet.serve.http.parameters import Arguments
from tb_pastnet.serve.http.web import Answer, Known
from tb_pastnet.serve.routes.export import export_impl
from tb_pastnet.serve.routes.layers import channel_impl, layer_impl
from tb_pastnet.serve.routes.overlap import overlap_impl, overlap_layers_impl
from tb_pastnet.serve.routes.runs import (
    findings_impl,
    function_impl,
    index_impl,
    overview_impl,
    records_impl,
    violations_impl,
)

ROUTES: dict[str, Callable[[Store, Caller, Arguments], Answer | Known]] = {
    "/index": index_impl,
    "/overview": overview_impl,
    "/records": records_impl,
    "/layer": layer_impl,
    "/channel": channel_impl,
    "/violations": violations_impl,
    "/findings": findings_impl,
    "/function": function_impl,
    "/overlap": overlap_impl,
    "/overlap_layers": overlap_layers_impl,
    "/export.csv": export_impl,
}
"""What is served below `data/plugin/pastnet/`."""
