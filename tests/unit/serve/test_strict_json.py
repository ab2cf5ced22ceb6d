from __future__ import annotations

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from tb_pastnet.serve.http.answers import dumps

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def _refuse(constant: str) -> None:
    raise AssertionError(constant)


def _nulled(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [_nulled(item) for item in value]
    if isinstance(value, dict):
        return {key: _nulled(item) for key, item in value.items()}
    return value


@given(JSON)
def test_it_is_json_and_says_the_same(value: object) -> None:
    text = dumps(value)
    assert text.isascii()
    assert json.loads(text, parse_constant=_refuse) == _nulled(value)
