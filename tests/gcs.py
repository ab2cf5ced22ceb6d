"""A store on loopback that speaks GCS: to gcsfs, and behind a proxy to TensorFlow's own client.

The addresses of the latter are fixed. So it asks its proxy for them, which is this store, with a
certificate of its own.
"""

from __future__ import annotations

import json
import os
import ssl
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from werkzeug import Request, Response
from werkzeug.exceptions import NotFound
from werkzeug.routing import Map, Rule

from tests.stores import BUCKET, Handler, Server

API = "/storage/v1/b/<bucket>/o"


class Gcs(Server):
    """A bucket in memory; `emulator` leads gcsfs to it, `proxy` TensorFlow."""

    def __init__(self, folder: Path) -> None:
        self._objects: dict[str, bytes] = {}
        self._sessions: list[str] = []
        rows: list[tuple[str, str, Callable[..., Response]]] = [
            ("POST", f"/upload{API}", self._upload),
            ("PUT", f"/upload{API}", self._send),
            ("GET", API.removesuffix("/o"), self._bucket),
            ("GET", API, self._list),
            ("GET", f"{API}/<path:key>", self._describe),
            ("DELETE", f"{API}/<path:key>", self._delete),
            ("GET", f"/download{API}/<path:key>", self._read),
            ("GET", "/<bucket>/<path:key>", self._read),
        ]
        rules = [Rule(path, methods=[method], endpoint=view) for method, path, view in rows]
        self._rules = Map(rules, merge_slashes=False)
        super().__init__(self._route, _Proxy)
        certificate = folder / "certificate.pem"
        certificate.write_bytes(_certificate())
        # The handlers of connections read it.
        self._server.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._server.tls.load_cert_chain(certificate)
        self.emulator = {
            "STORAGE_EMULATOR_HOST": self.url,
            "NO_GCE_CHECK": "true",  # this machine isn't Google's
            # Kinds of buckets are asked for by gRPC, which isn't spoken here.
            "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",
        }
        self.proxy = {
            "https_proxy": self.url,
            "CURL_CA_BUNDLE": str(certificate),
            "GOOGLE_AUTH_TOKEN_FOR_TESTING": "token",
            "GCS_RETRY_CONFIG_MAX_RETRIES": "1",
        }

    def writes(self, environ: dict[str, Any]) -> bool:
        """An upload in one request, or that of a session; its beginning writes nothing."""
        return super().writes(environ) or "uploadType=multipart" in environ["QUERY_STRING"]

    def _route(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        request = Request(environ)
        request.get_data()  # what is left of it would be taken for the next request

        def view(endpoint: Callable[..., Response], names: dict[str, str]) -> Response:
            if names.pop("bucket") != BUCKET:
                raise NotFound
            return endpoint(request, **names)

        rules = self._rules.bind_to_environ(environ)
        return rules.dispatch(view, catch_http_exceptions=True)(environ, start)

    def _upload(self, request: Request) -> Response:
        if request.args["uploadType"] == "resumable":
            self._sessions.append(request.args["name"])
            address = f"https://{request.host}{request.path}?upload_id={len(self._sessions) - 1}"
            return Response(headers={"Location": address})
        # The description, and the object behind it.
        boundary = b"\n--" + request.mimetype_params["boundary"].encode()
        description, data, _ = (b"\n" + request.get_data()).split(boundary)[1:]
        name = json.loads(description.partition(b"\n\n")[2])["name"]
        return self._keep(name, data.partition(b"\n\n")[2])

    def _send(self, request: Request) -> Response:
        name = self._sessions[int(request.args["upload_id"])]
        if not request.headers["Content-Range"].startswith("bytes */"):
            return self._keep(name, request.get_data())
        # What has arrived is asked for.
        return self._describe(request, name) if name in self._objects else Response(status=308)

    def _keep(self, name: str, data: bytes) -> Response:
        self._objects[name] = data
        return _json(self._described(name))

    def _bucket(self, _: Request) -> Response:
        return _json({"name": BUCKET})

    def _list(self, request: Request) -> Response:
        prefix, delimiter = request.args.get("prefix", ""), request.args.get("delimiter")
        keys = sorted(key for key in self._objects if key.startswith(prefix))
        prefixes = set()
        if delimiter:
            parts = {key: key[len(prefix) :].partition(delimiter) for key in keys}
            prefixes = {prefix + head + cut for head, cut, _ in parts.values() if cut}
            keys = [key for key, (_, cut, _) in parts.items() if not cut]
        items = [self._described(key) for key in keys]
        return _json({"kind": "storage#objects", "items": items, "prefixes": sorted(prefixes)})

    def _describe(self, _: Request, key: str) -> Response:
        return _json(self._described(key))

    def _delete(self, _: Request, key: str) -> Response:
        self._object(key)
        del self._objects[key]
        return Response(status=204)

    def _read(self, request: Request, key: str) -> Response:
        response = Response(self._object(key), mimetype="application/octet-stream")
        size = len(self._objects[key])
        return response.make_conditional(request, accept_ranges=True, complete_length=size)

    def _described(self, key: str) -> dict[str, str]:
        size = str(len(self._object(key)))
        return {"name": key, "size": size, "generation": "1", "updated": "2026-01-01T00:00:00.000Z"}

    def _object(self, key: str) -> bytes:
        if key not in self._objects:
            raise NotFound
        return self._objects[key]


class _Proxy(Handler):
    """Takes the place of all hosts that it is asked for."""

    def do_CONNECT(self) -> None:  # noqa: N802 - the name that http.server calls
        """Speaks TLS from here on."""
        self.send_response(200)
        self.end_headers()
        self.connection = self.server.tls.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb", 0)
        self.close_connection = False

    def finish(self) -> None:
        """The server knows only the connection that TLS took over."""
        super().finish()
        self.connection.close()


def _json(value: Any) -> Response:
    return Response(json.dumps(value), mimetype="application/json")


def _certificate() -> bytes:
    """A key, and a certificate of it that it signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    now, day = datetime.now(timezone.utc), timedelta(days=1)
    hosts = x509.SubjectAlternativeName([x509.DNSName("*.googleapis.com")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).serial_number(1)
    builder = builder.not_valid_before(now - day).not_valid_after(now + day)
    signed = builder.add_extension(hosts, critical=False).public_key(key.public_key())
    pem = serialization.Encoding.PEM
    form, secret = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return key.private_bytes(pem, form, secret) + signed.sign(key, hashes.SHA256()).public_bytes(
        pem
    )


@contextmanager
def gcs(client: str = "gcsfs") -> Iterator[Gcs]:
    """A store with a bucket, for gcsfs, or here for the client of "tensorflow".

    Processes that are started meanwhile know it, too, by both.
    """
    with TemporaryDirectory() as folder:
        server = Gcs(Path(folder))
        with mock.patch.dict(os.environ, server.emulator | server.proxy):
            if client == "gcsfs":
                import gcsfs

                gcsfs.GCSFileSystem.clear_instance_cache()
                yield server
            else:
                with without_gcsfs():
                    yield server
        server.close()


@contextmanager
def without_gcsfs() -> Iterator[None]:
    """As if it weren't installed: TensorFlow's client takes its place."""
    from fsspec.registry import _registry

    with mock.patch.dict(sys.modules, {"gcsfs": None}), mock.patch.dict(_registry):
        _registry.pop("gs", None)
        yield
