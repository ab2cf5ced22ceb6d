from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from tb_pastnet.reader.cache import Cache
from tb_pastnet.reader.notes import WITHHELD, Notes


@dataclass
class Made:
    text: str
    size: int = 10
    notes: Notes = field(default_factory=Notes)


def test_a_value_is_made_once_for_each_version() -> None:
    cache, made = Cache(100), []

    def make() -> Made:
        made.append(1)
        return Made(f"value {len(made)}")

    assert [cache.get("k", version, make).text for version in (1, 1, 2)] == [
        "value 1",
        "value 1",
        "value 2",
    ]
    assert cache.held == 10
    assert cache.find("k", 1) is None


def test_the_ceiling_holds_and_the_least_recently_used_goes_first() -> None:
    cache = Cache(30)
    for key in "abc":
        cache.get(key, 1, lambda: Made("x"))
    cache.get("a", 1, lambda: pytest.fail("a is held"))
    cache.get("d", 1, lambda: Made("x"))
    assert [key for key in "abcd" if cache.find(key, 1)] == ["a", "c", "d"]
    assert cache.held == 30


@pytest.mark.parametrize(
    ("large", "most"),
    [(Made("l", 31), 40), (Made("l", 21), 20), (Made("l", notes=Notes({WITHHELD: 1})), 40)],
)
def test_what_is_too_large_or_not_whole_is_handed_out_and_not_kept(large: Made, most: int) -> None:
    cache = Cache(30)
    cache.get("small", 1, lambda: Made("s", 20))
    cache.get("large", 0, lambda: Made("an older version"))
    assert cache.get("large", 1, lambda: large, most) is large
    assert cache.find("large", 0) is cache.find("large", 1) is None
    assert cache.find("small", 1)
    assert cache.held == 20


def test_those_that_are_missing_are_made_in_one_go() -> None:
    cache, asked = Cache(25), []

    def make(missing: Sequence[str]) -> list[Made]:
        asked.append(list(missing))
        return [Made(key) for key in missing]

    cache.get("b", 1, lambda: Made("b"))
    # The last two are held then; all are handed out.
    for keys, missing in (("abc", ["a", "c"]), ("ac", None), ("ab", ["b"])):
        values = cache.get_each(dict.fromkeys(keys, 1), make)
        assert [value.text for value in values.values()] == list(keys)
        assert missing is None or asked.pop() == missing
        assert asked == []
    assert cache.held == 20


def test_what_is_named_in_a_key_is_let_go() -> None:
    cache = Cache(100)
    for key in (("layer", ("a", "b")), ("layer", "c"), "b", "c"):
        cache.get(key, 1, lambda: Made("x"))
    cache.forget({"b"})
    assert cache.held == 20
    assert cache.find("c", 1)
    assert cache.find(("layer", "c"), 1)


def test_a_failure_is_raised_and_not_kept() -> None:
    cache = Cache(30)

    def fail() -> Made:
        raise ValueError("no")

    with pytest.raises(ValueError, match="^no$"):
        cache.get("k", 1, fail)
    assert cache.get("k", 1, lambda: Made("yes")).text == "yes"


def test_many_threads_make_a_value_once_and_dont_wait_for_other_keys() -> None:
    cache, made = Cache(100), []
    inside, go_on = threading.Event(), threading.Event()

    def slow() -> Made:
        made.append(1)
        inside.set()
        assert go_on.wait(10)
        return Made("slow")

    values: list[Made] = []
    threads = [
        threading.Thread(target=lambda: values.append(cache.get("slow", 1, slow))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    assert inside.wait(10)
    assert cache.get("other", 1, lambda: Made("quick")).text == "quick"
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert [value.text for value in values] == ["slow"] * 4
    assert len(made) == 1
