from __future__ import annotations

import threading

import pytest

from tb_pastnet.reader.cache import Cache


def test_a_value_is_made_once_for_each_version() -> None:
    cache, made = Cache(100), []

    def make() -> tuple[str, int]:
        made.append(1)
        return f"value {len(made)}", 10

    assert [cache.get("k", 1, make), cache.get("k", 1, make), cache.get("k", 2, make)] == [
        "value 1",
        "value 1",
        "value 2",
    ]
    assert cache.held == 10


def test_the_ceiling_holds_and_the_least_recently_used_goes_first() -> None:
    cache = Cache(30)
    for key in "abc":
        cache.get(key, 1, lambda: ("x", 10))
    cache.get("a", 1, lambda: pytest.fail("a is held"))
    cache.get("d", 1, lambda: ("x", 10))
    assert [key for key in "abcd" if cache.holds(key, 1)] == ["a", "c", "d"]
    assert cache.held == 30


def test_what_is_larger_than_the_ceiling_is_handed_out_and_not_kept() -> None:
    cache = Cache(30)
    cache.get("small", 1, lambda: ("s", 20))
    assert cache.get("large", 1, lambda: ("l", 31)) == "l"
    assert not cache.holds("large", 1)
    assert cache.holds("small", 1)
    assert cache.held == 20


def test_a_failure_is_raised_and_not_kept() -> None:
    cache = Cache(30)

    def fail() -> tuple[str, int]:
        raise ValueError("no")

    with pytest.raises(ValueError, match="^no$"):
        cache.get("k", 1, fail)
    assert cache.get("k", 1, lambda: ("yes", 1)) == "yes"


def test_many_threads_make_a_value_once_and_dont_wait_for_other_keys() -> None:
    cache, made = Cache(100), []
    inside, go_on = threading.Event(), threading.Event()

    def slow() -> tuple[str, int]:
        made.append(1)
        inside.set()
        assert go_on.wait(10)
        return "slow", 1

    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(cache.get("slow", 1, slow))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    assert inside.wait(10)
    assert cache.get("other", 1, lambda: ("quick", 1)) == "quick"
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert found == ["slow"] * 4
    assert len(made) == 1
