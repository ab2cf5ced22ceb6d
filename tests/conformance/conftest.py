"""Each behaviour is a test, asked of each room that has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import rooms
from tests.conformance.exceptions import EXCEPTIONS
from tests.conformance.room import Room
from tests.conformance.story import Story, tell

Begin = Callable[..., Room]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Leaves out what a room doesn't have: each with its reason in the table."""
    if "adaptor" in metafunc.fixturenames:
        behaviour = metafunc.function.__name__.removeprefix("test_")
        here = [name for name in rooms.HERE if (behaviour, name) not in EXCEPTIONS]
        metafunc.parametrize("adaptor", here, indirect=True, scope="session")


@pytest.fixture(scope="session")
def adaptor(request: pytest.FixtureRequest) -> type[Room]:
    return rooms.adaptor(request.param)


@pytest.fixture(scope="session")
def story(adaptor: type[Room], tmp_path_factory: pytest.TempPathFactory) -> Story:
    """A training recorded once, of which many behaviours are asked."""
    return tell(adaptor, tmp_path_factory.mktemp("story") / "run")


@pytest.fixture
def begin(adaptor: type[Room], tmp_path: Path) -> Iterator[Begin]:
    """Begins trainings, and ends them."""
    begun: list[Room] = []

    def make(values: Any, name: str = "run", **settings: Any) -> Room:
        begun.append(adaptor(tmp_path / name, values, **settings))
        return begun[-1]

    yield make
    for room in begun:
        room.close()
