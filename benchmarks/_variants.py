"""The ways in which our recorder measures, and what is promised of each."""

from __future__ import annotations

import importlib.util
import os
from typing import NamedTuple

from tb_pastnet.core.numba_switch import SWITCH
from tools.steps import Failure

NETWORKS = "CNN", "ResNet-50", "transformer", "200 small variables"


class Variant(NamedTuple):
    """One way in which our recorder measures.

    Attributes:
        name: as tables have it.
        fast: what the environment variable says that chooses it.
        needs: a module that has to be there; "" for none.
        bars: in % of a step for a record at each step, by network.
    """

    name: str
    fast: str
    needs: str
    bars: dict[str, float]

    def choose(self) -> None:
        """Lets recorders that are made from now on measure so.

        Raises:
            Failure: what it needs isn't installed.
        """
        if self.needs and importlib.util.find_spec(self.needs) is None:
            raise Failure(f"{self.needs} isn't installed")
        os.environ[SWITCH] = self.fast


VARIANTS = (
    Variant("ours", "0", "", dict(zip(NETWORKS, (6.0, 20.0, 14.0, 35.0), strict=True))),
    Variant("ours, [fast]", "1", "numba", dict(zip(NETWORKS, (3.0, 5.0, 5.0, 25.0), strict=True))),
)
