"""The plugin that stands in when the real one can't be loaded. It needs TensorBoard only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorboard.backend import http_util
from tensorboard.plugins import base_plugin
from werkzeug import wrappers

from tb_pastnet.serve.explain import explaining_module, for_reader


class StandInPlugin(base_plugin.TBPlugin):
    """Shows in the tab why PastNet is not there. The other tabs are not concerned.

    Args:
        error: what went wrong while loading.
    """

    plugin_name = "pastnet"

    def __init__(self, error: BaseException) -> None:
        self._page = explaining_module(
            "PastNet could not be loaded",
            for_reader(error),
            "Reinstall it in the environment that TensorBoard runs in: "
            "pip install --force-reinstall tb-pastnet",
            "Your logs are not affected, and neither are the other tabs.",
        )

    def get_plugin_apps(self) -> dict[str, Callable[..., Any]]:
        """The page, and nothing else."""
        return {"/index.js": wrappers.Request.application(self._serve_page)}

    def is_active(self) -> bool:
        """Always False: data lights the tab."""
        return False

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """The same tab as the real plugin's."""
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name="PastNet")

    def _serve_page(self, request: wrappers.Request) -> Any:
        return http_util.Respond(request, self._page, "text/javascript")
