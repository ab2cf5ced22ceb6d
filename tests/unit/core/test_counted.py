"""Numbers and what they count."""

from __future__ import annotations

from tb_pastnet.core.counted import counted


def test_one_is_singular_and_all_others_are_plural() -> None:
    texts = [counted(count, "record") for count in (0, 1, 2, 2000)]
    assert texts == ["0 records", "1 record", "2 records", "2,000 records"]
