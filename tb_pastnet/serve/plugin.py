"""The plugin: routes and the page's files, behind TensorBoard's interface."""

from __future__ import annotations

from pathlib import Path

from tensorboard import plugin_util
from tensorboard.plugins import base_plugin
from werkzeug import wrappers

from tb_pastnet.reader.series_source import RequestContext
from tb_pastnet.reader.store import Store
from tb_pastnet.serve.explain import PAGE, Tab, explaining_module
from tb_pastnet.serve.http.answers import Answer, NotModified, answer
from tb_pastnet.serve.http.parameters import Query
from tb_pastnet.serve.http.web import Handler, WsgiApp, application, not_found, shown
from tb_pastnet.serve.routes import ROUTES

STATIC = Path(__file__).parent / "static"

# By hand: on Windows .js may be text/plain.
_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".map": "application/json",
}


class PastNetPlugin(Tab):
    """Shows which channels of a network move, are frozen or are pruned.

    Only the data provider of TensorBoard's context is used: the fast loader has nothing else.
    """

    def __init__(self, context: base_plugin.TBContext, static: Path = STATIC) -> None:
        self._store = Store(context.data_provider)
        # Fixed here: a request chooses one of these and never forms a path.
        self._files = _files(static)

    def get_plugin_apps(self) -> dict[str, WsgiApp]:
        """All routes, by path below `data/plugin/pastnet`."""
        apps = {path: application(self._data_route(path)) for path in ROUTES}
        files = {path: application(_file_route(file)) for path, file in self._files.items()}
        always = {PAGE: application(_missing_page), "/*": application(_unknown)}
        return {**always, **files, **apps}

    def _data_route(self, path: str) -> Handler:
        route = ROUTES[path]

        def serve(request: wrappers.Request) -> Answer | NotModified:
            context = RequestContext(
                plugin_util.context(request.environ), plugin_util.experiment_id(request.environ)
            )
            return route(Query(self._store, context, request.args))

        return serve


def _files(static: Path) -> dict[str, Path]:
    return {
        f"/{file.name}": file
        for file in sorted(static.glob("*"))
        if file.suffix in _TYPES and file.is_file()
    }


def _file_route(file: Path) -> Handler:
    def serve(request: wrappers.Request) -> Answer:
        del request
        return answer(file.read_bytes(), _TYPES[file.suffix])

    return serve


def _missing_page(request: wrappers.Request) -> Answer:
    del request
    page = explaining_module(
        "The page of PastNet is missing",
        "This installation has the data routes, but not the built page (serve/static/index.js).",
        "Reinstall tb-pastnet, or build the page in a source checkout: python3 dev.py bundle",
    )
    return answer(page.encode("ascii"), _TYPES[".js"])


def _unknown(request: wrappers.Request) -> Answer:
    raise not_found(
        f"Could not answer: expected one of {', '.join(sorted(ROUTES))}, got "
        f"{shown(request.path.rpartition('/')[2])}. http_api.md describes them."
    )
