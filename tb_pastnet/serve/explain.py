"""The tab, a page of a few sentences without a build, and a plugin that shows only that.

They need only TensorBoard.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tensorboard.backend import http_util
from tensorboard.plugins import base_plugin
from werkzeug import wrappers

PAGE = "/index.js"

# textContent and no HTML: the text may come from a log or from an exception.
_MODULE = """\
const LINES = %s;
export function render() {
  const dark = () => window.parent.document.body.classList.contains("dark-mode");
  const body = document.body;
  let isDark = false;
  try { isDark = dark(); } catch { /* no parent that we may look at */ }
  body.style.cssText = "margin:40px auto;max-width:42em;font:16px/1.5 Roboto,sans-serif;" +
    (isDark ? "background:#303030;color:#e8eaed" : "background:#fff;color:#202124");
  body.replaceChildren(...LINES.map((line, at) => {
    const element = document.createElement(at ? "p" : "h1");
    element.style.fontSize = at ? "16px" : "20px";
    element.textContent = line;
    return element;
  }));
}
"""


def explaining_module(title: str, *sentences: str) -> str:
    """Writes a JavaScript module that shows a title and some sentences."""
    lines = json.dumps([title, *sentences]).replace("<", "\\u003c")
    return _MODULE % lines


def for_reader(error: BaseException) -> str:
    """Describes an exception, without traceback and absolute paths."""
    name = type(error).__name__
    if isinstance(error, OSError):
        return f"{name}: {error.strerror}" if error.strerror else name
    # An ImportError's text may name the file it came from: "... (/path/to/module.py)".
    text = str(error).split(" (/")[0]
    return f"{name}: {text}" if text and "/" not in text else name


class Tab(base_plugin.TBPlugin):
    """The tab, whatever it shows."""

    plugin_name = "pastnet"

    def is_active(self) -> bool:
        """Always False: data activate the tab, through `data_plugin_names`, for free."""
        return False

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """The page, and the name of the tab."""
        return base_plugin.FrontendMetadata(es_module_path=PAGE, tab_name="PastNet")


class StandInPlugin(Tab):
    """Shows in the tab what went wrong while loading. The other tabs aren't affected."""

    def __init__(self, error: BaseException) -> None:
        self._page = explaining_module(
            "PastNet could not be loaded",
            for_reader(error),
            "Reinstall it in the environment that TensorBoard runs in: "
            "pip install --force-reinstall tb-pastnet",
            "Your logs and the other tabs are not affected.",
        )

    def get_plugin_apps(self) -> dict[str, Callable[..., Any]]:
        """Only the page."""
        return {PAGE: wrappers.Request.application(self._serve_page)}

    def _serve_page(self, request: wrappers.Request) -> Any:
        return http_util.Respond(request, self._page, "text/javascript")
