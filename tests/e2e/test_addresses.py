"""Every address of the page restores what it stood for, over all fields of its state."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.e2e.browser import clean
from tests.e2e.conftest import Tab
from tests.e2e.made_logs import made_tab

# In the order in which the page writes them.
FIELDS: dict[str, tuple[str, ...]] = {
    "v": ("network", "layer", "compare", "function"),
    "l": ("block/conv2", "conv1", "logits"),
    "r": ("ticket", "drift", "half_frozen"),
    "w": ("block/conv2/bias", "conv1/bias"),
    "c": ("0", "7", "15"),
    "s": ("0", "10", "605"),
    "th": ("0.01", "0.00001"),
    "m": ("state", "delta"),
    "o": ("index", "held", "delta"),
    "d": ("frozen", "sparsity", "delta"),
    "x": ("dense", "dense,drift"),
    "g": ("block",),
    "fr": ("t", "(dense|dri|tick)"),
    "fl": ("conv", "block/.*3$"),
    "gr": ("_s\\d$", "t(.)"),
    "so": ("1",),
    "z": ("300~900",),
    "a": ("drift", "dense"),
    "b": ("dense", "ticket"),
    "vs": ("1",),
    "r2": ("drift", "dense"),
    "u": ("weights", "channels"),
    "mk": ("trainable",),
    "of": ("half_frozen",),
    "p": ("3", "3~12"),
    "zr": ("2~9",),
    "pl": ("conv1",),
    "fm": ("cosine", "divergence"),
}


def written(fields: dict[str, str]) -> str:
    """An address as the page writes it."""
    return "".join(
        f"&p.pastnet.{key}={quote(fields[key], safe=_SAFE)}" for key in FIELDS if key in fields
    )


_SAFE = "-_.!~*'()"


def addresses_of(together: int) -> list[dict[str, str]]:
    """Each value of each field, some together in one address, in company that changes."""
    chance = random.Random(5)
    values = [(key, value) for key, all_ in FIELDS.items() for value in all_]
    chance.shuffle(values)
    found = []
    while values:
        own: dict[str, str] = {}
        for key, value in values:
            if key not in own and len(own) < together:
                own[key] = value
        values = [(key, value) for key, value in values if own.get(key) != value]
        company = chance.sample(sorted(FIELDS), 4)
        fields = {other: chance.choice(FIELDS[other]) for other in company} | own
        if fields.get("v") == "compare":  # it opens on what differs most, and keeps that
            fields.setdefault("r2", "dense")
        found.append(fields)
    return found


@pytest.fixture(
    scope="module", params=[7, *(pytest.param(few, marks=pytest.mark.prove) for few in (4, 1))]
)
def addresses(request: pytest.FixtureRequest) -> list[dict[str, str]]:
    """Addresses of so many values each, beside their company; the proof has them in more company."""
    return addresses_of(request.param)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """Runs with masks of single weights."""
    with made_tab("masks", tmp_path_factory.mktemp("addresses")) as tab:
        yield tab


@pytest.fixture(scope="module")
def restored(made: Tab, addresses: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Each address, opened afresh, come to, and gone back to."""
    hashes = [written(fields) for fields in addresses]
    found: list[dict[str, Any]] = clean(made.drive("addresses", hashes=hashes))
    return found


def test_the_page_keeps_the_address_that_it_was_opened_with(
    restored: list[dict[str, Any]], addresses: list[dict[str, str]]
) -> None:
    assert [seen["url"] for seen in restored] == [
        f"#pastnet{written(fields)}" for fields in addresses
    ]
    assert min(seen["size"] for seen in restored) > 1000  # something was seen


@pytest.mark.parametrize("way", ["come", "back", "forward"])
def test_an_address_shows_the_same_whatever_was_shown_before(
    restored: list[dict[str, Any]], addresses: list[dict[str, str]], way: str
) -> None:
    told = [seen for seen in restored if way in seen]
    back = min(24, len(addresses) - 1)  # a browser forgets others
    assert len(told) == {"come": len(addresses), "back": back, "forward": 1}[way]
    differences = {seen["url"]: seen[way] for seen in told}
    assert {hash_: parts for hash_, parts in differences.items() if parts} == {}


@pytest.mark.parametrize("together", [1, 4, 7])
def test_the_addresses_have_every_value(together: int) -> None:
    found = {pair for fields in addresses_of(together) for pair in fields.items()}
    assert found == {(key, value) for key, all_ in FIELDS.items() for value in all_}
