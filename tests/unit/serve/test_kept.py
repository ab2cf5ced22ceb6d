"""The name of an answer outlives the answer."""

from __future__ import annotations

from dataclasses import replace

from tb_pastnet.reader.notes import WITHHELD, Notes
from tb_pastnet.reader.store import Store
from tb_pastnet.serve.http.answers import JSON, Answer, NotModified, answer
from tb_pastnet.serve.routes import kept
from tests.providers import MemoryProvider

KEY = ("a", "b")


class Maker:
    def __init__(self, body: bytes, complete: bool = True) -> None:
        self.body, self.complete, self.count = body, complete, 0

    def __call__(self) -> Answer:
        self.count += 1
        lost = Notes() if self.complete else Notes({WITHHELD: 1})
        return replace(answer(self.body, JSON), notes=lost)


def test_a_name_is_known_where_the_answer_had_to_make_room() -> None:
    store, maker = Store(MemoryProvider(), ceiling=40_000), Maker(bytes(15_000))
    first = kept(store, KEY, 1, maker, large=True)
    assert isinstance(first, Answer)
    kept(store, ("another",), 1, Maker(bytes(15_001)), large=True)
    again = kept(store, KEY, 1, maker, large=True)
    assert isinstance(again, NotModified)
    assert (again.tag, maker.count) == (first.tag, 1)
    assert again.make().body == first.body
    assert maker.count == 2


def test_another_version_has_another_name() -> None:
    store = Store(MemoryProvider())
    old, new = (kept(store, KEY, at, Maker(body)) for at, body in ((1, b"old"), (2, b"new")))
    assert (old.body, new.body) == (b"old", b"new")
    assert old.tag != new.tag


def test_an_answer_that_is_not_whole_has_no_name_to_ask_for() -> None:
    store, maker = Store(MemoryProvider()), Maker(b"a part", complete=False)
    for count in (1, 2):
        assert isinstance(kept(store, KEY, 1, maker, large=True), Answer)
        assert maker.count == count
