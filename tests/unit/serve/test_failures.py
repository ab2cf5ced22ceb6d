from __future__ import annotations

import json

import pytest

from tb_pastnet.serve.http import failures


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (failures.bad_request("Could not a"), 400, "bad_request"),
        (failures.not_found("Could not b"), 404, "not_found"),
        (failures.not_allowed("POST"), 405, "method_not_allowed"),
        (failures.internal(ValueError("/secret/path")), 500, "internal"),
        (failures.from_tensorboard(404), 404, "not_found"),
        (failures.from_tensorboard(401), 401, "unauthenticated"),
        (failures.from_tensorboard(503), 503, "internal"),
    ],
)
def test_all_failures_have_one_shape(failure: failures.Failure, status: int, code: str) -> None:
    body = json.loads(failure.body())
    assert failure.status == status
    assert set(body) == {"schema", "error"}
    assert set(body["error"]) == {"code", "message"}
    assert body["error"]["code"] == code
    assert body["error"]["message"].startswith("Could not ")
    assert "/secret" not in body["error"]["message"]


def test_a_long_name_is_cut() -> None:
    assert failures.shown("x" * 10_000) == "'" + "x" * 80 + "…'"
