"""What a reader accepts is what the page of the record format says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_pastnet.format import limits

PAGE = (Path(__file__).parents[3] / "docs/reference/record_format.md").read_text("utf-8")


def power(number: int) -> str:
    exponent = str(number.bit_length() - 1).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"2{exponent}"


@pytest.mark.parametrize(
    "said",
    [
        f"at most {power(limits.MAX_CELLS)} cells together",
        f"takes more than {limits.MAX_NAME:,} bytes of UTF-8",
        f"more than {power(limits.MAX_CHANNELS)} channels",
        f"larger than {power(limits.MAX_JSON)} bytes",
        f"of more than {limits.MAX_GROUPS:,} groups",
        f"bytes of the heads | at most {limits.MAX_HEADS:,}",
        f"of the variable, at most {power(limits.MAX_MASK)}",
        f"a message holds at most {limits.MAX_VIOLATIONS:,} channels",
        f"There are at most {limits.MAX_RECORDS:,} records, {limits.MAX_PLACES:,} places and ",
        f" and {power(limits.MAX_VALUES)} values together",
    ],
)
def test_the_documented_limits_are_those_of_the_code(said):
    assert said in PAGE
