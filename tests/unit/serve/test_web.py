from __future__ import annotations

import gzip

import pytest
from tensorboard import errors
from tensorboard.backend.security_validator import SecurityValidatorMiddleware
from werkzeug import wrappers
from werkzeug.test import Client

from tb_pastnet.serve.http.answers import BINARY, JSON, SCHEMA, Answer, NotModified, answer
from tb_pastnet.serve.http.web import application, bad_request, shown

LARGE = bytes(5000)


def client(result: Answer | Exception) -> Client:
    def route(request: wrappers.Request) -> Answer:
        if isinstance(result, Exception):
            raise result
        return result

    return Client(SecurityValidatorMiddleware(application(route)))


def test_an_answer_is_named_by_its_content() -> None:
    assert answer(b"a", JSON).tag == answer(b"a", BINARY).tag != answer(b"b", JSON).tag


def test_what_the_client_has_is_not_sent_again(caplog) -> None:
    asked = client(answer(LARGE, BINARY))
    tag = asked.get("/").headers["ETag"]
    for header in (tag, f'W/"x", {tag}', tag.removeprefix("W/"), "*"):
        again = asked.get("/", headers={"If-None-Match": header})
        assert (again.status_code, again.get_data()) == (304, b"")
        assert again.headers["ETag"] == tag
        assert again.headers["X-Content-Type-Options"] == "nosniff"
    assert asked.get("/", headers={"If-None-Match": 'W/"x"'}).status_code == 200
    assert caplog.text == ""


def test_binary_is_packed_where_it_pays_and_unpacked_for_who_cant(caplog) -> None:
    asked = client(answer(LARGE, BINARY))
    packed = asked.get("/", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert len(packed.get_data()) < 100
    assert gzip.decompress(packed.get_data()) == LARGE
    plain = asked.get("/")
    assert "Content-Encoding" not in plain.headers
    assert plain.get_data() == LARGE
    assert not answer(b"short", BINARY).packed
    assert caplog.text == ""


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"])
def test_only_get_is_answered(method: str, caplog) -> None:
    response = client(answer(b"x", JSON)).open("/", method=method)
    assert response.status_code == 405
    assert response.headers["Allow"] == "GET"
    assert method == "HEAD" or response.json["error"]["code"] == "method_not_allowed"
    assert caplog.text == ""


def test_failures_and_errors_have_one_shape(caplog) -> None:
    unavailable = errors.PublicError("/secret")
    unavailable.http_code = 503
    for raised, status, code in [
        (bad_request("Could not x"), 400, "bad_request"),
        (errors.NotFoundError("/secret"), 404, "not_found"),
        (errors.PermissionDeniedError("/secret"), 403, "forbidden"),
        (errors.UnauthenticatedError("/secret", challenge="Basic"), 401, "unauthenticated"),
        (unavailable, 503, "internal"),
        (ValueError("/secret"), 500, "internal"),
    ]:
        response = client(raised).get("/")
        assert response.status_code == status
        assert set(response.json) == {"schema", "error"}
        assert set(response.json["error"]) == {"code", "message"}
        assert response.json["schema"] == SCHEMA
        assert response.json["error"]["code"] == code
        assert response.json["error"]["message"].startswith("Could not ")
        assert "secret" not in response.get_data(as_text=True)
    # What the client isn't told, the log is.
    assert "/secret" in caplog.text


def test_there_is_no_header_that_opens_us_to_other_sites() -> None:
    headers = client(answer(b"{}", JSON)).get("/", headers={"Origin": "http://evil"}).headers
    assert not [name for name, _ in headers if name.startswith("Access-Control")]


def test_what_the_client_has_is_not_even_made() -> None:
    made: list[str] = []

    def make() -> Answer:
        made.append("made")
        return answer(b"new", JSON)

    def route(request: wrappers.Request) -> NotModified:
        return NotModified('W/"old"', make)

    asked = Client(SecurityValidatorMiddleware(application(route)))
    again = asked.get("/", headers={"If-None-Match": 'W/"old"'})
    assert (again.status_code, again.headers["ETag"], made) == (304, 'W/"old"', [])
    fresh = asked.get("/", headers={"If-None-Match": 'W/"another"'})
    assert (fresh.get_data(), fresh.headers["ETag"]) == (b"new", answer(b"new", JSON).tag)
    # An answer that became the one that the client has.
    same = asked.get("/", headers={"If-None-Match": fresh.headers["ETag"]})
    assert (same.status_code, made) == (304, ["made", "made"])


def test_a_long_name_is_cut() -> None:
    assert shown("x" * 10_000) == "'" + "x" * 80 + "…'"
