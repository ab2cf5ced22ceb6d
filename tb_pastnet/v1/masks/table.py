"""The masks of a graph, as they are in its session."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tb_pastnet.core.names import resolve
from tb_pastnet.keras.masks.desk import Desk, Enforcing
from tb_pastnet.keras.masks.hold import Hold, Mask
from tb_pastnet.keras.masks.table import MaskTable
from tb_pastnet.keras.model.weights import TFWeight
from tb_pastnet.v1.graph.session import GraphSession
from tb_pastnet.v1.masks.holds import SessionHold


class SessionTable(MaskTable):
    """Holds of variables that are made at once; one counts as soon as it holds something.

    What a Saver has restored is seen when a session is first asked, and by `refresh`.

    Args:
        variables: all that were found.
        site: their graph.

    Attributes:
        made: the holds by name, of all variables that an optimizer trains.
    """

    def __init__(self, variables: Sequence[TFWeight], site: GraphSession) -> None:
        trained = [record for record in variables if not record.found.statistic]
        self.made = {record.text.id: SessionHold(record.found.variable, site) for record in trained}
        self._by_variable = {id(hold.variable): hold for hold in self.made.values()}
        super().__init__(variables, lambda record: self.made[record.text.id])
        self._site = site
        self._seen: Any = lambda: None
        self._closed = site.function(lambda: [hold.closed() for hold in self.made.values()])

    @property
    def holds(self) -> Mapping[str, Hold]:
        """The variables of which something is held, or was."""
        self.look()
        return super().holds

    def look(self) -> None:
        """Looks at all masks where the session is another one than the last time."""
        session = self._site.current
        if session is not None and session is not self._seen():
            self.refresh()

    def made_of(self, variable: Any) -> SessionHold | None:
        """The hold of a variable, also where it holds nothing; None of statistics and others."""
        return self._by_variable.get(id(variable))

    def chosen(self, names: Iterable[str] | None) -> list[SessionHold]:
        """The holds of named variables; None: all."""
        ids = self.made if names is None else [resolve(name, self.made) for name in names]
        return [self.made[name] for name in ids]

    def read(self, name: str) -> tuple[Mask, Mask]:
        """See `MaskTable`."""
        return self.made[name].read() if name in self.made else super().read(name)

    def refresh(self) -> None:
        """Looks at all masks in the session.

        Raises:
            InvalidArgument: they have no values there, or there is no session.
        """
        closed = self._closed()
        self._seen = weakref.ref(self._site.current)
        for name, held in zip(self.made, closed, strict=True):
            if held:
                self.hold(name)
        self.version += 1


class SessionDesk(Desk):
    """Commands read the masks and weights of a graph at once, and write them in the end.

    Args:
        table: the masks.
        enforcing: puts changes in force.
        site: the graph.
    """

    def __init__(self, table: SessionTable, enforcing: Enforcing, site: GraphSession) -> None:
        super().__init__(table, enforcing)
        self._site = site

    def at_once(self) -> AbstractContextManager[None]:
        """See `Desk`."""
        return self._site.at_once()
