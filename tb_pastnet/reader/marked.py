"""The marks of all variables of a run: what their records alone say of held weights."""

from __future__ import annotations

from collections.abc import Iterator

from tb_pastnet.reader import notes
from tb_pastnet.reader.marks import UNMARKED, Marked
from tb_pastnet.reader.runs import Run
from tb_pastnet.reader.series import Series
from tb_pastnet.reader.source import Caller
from tb_pastnet.reader.state_series import make_movement
from tb_pastnet.reader.store import Store


def marks_of(
    store: Store, caller: Caller, run: Run, found: notes.Notes
) -> Iterator[tuple[str, Marked]]:
    """Reads the marks of all variables.

    Where an audit looked at a variable, its records bear no marks and aren't read.

    Args:
        store: the records.
        caller: on whose behalf.
        run: from the catalog.
        found: gets what can't be read of them.

    Yields:
        A variable and its marks.
    """
    held = store.held(caller, run)
    known = dict.fromkeys(one for layer in run.layers for one in layer.variables)
    variables = [one for one in known if held.commanded(one) is not None]
    yield from ((one, UNMARKED) for one in known if held.commanded(one) is None)

    def marked(name: str, series: Series) -> Marked:
        moves = make_movement(series, run.variables[name], held.commanded(name))
        return Marked(moves.steps, moves.marks, moves.notes)

    made = store.each(caller, run, variables, marked)
    for variable, one in zip(variables, made, strict=True):
        found.update(one.notes)
        yield variable, one
