"""The layers of a run and their variables."""

from __future__ import annotations

from tb_pastnet.format import description
from tb_pastnet.reader.named import Named
from tb_pastnet.reader.records import Records
from tb_pastnet.reader.run_reader import Reader


class Variable(Records):
    """A recorded variable.

    Attributes:
        id: its path below the model, such as "block/conv1/kernel".
        name: its own name, such as "kernel".
        layer: the id of its layer.
        dtype: its dtype's name, empty in a log of summary calls.
    """

    def __init__(self, reader: Reader, variable: description.Variable) -> None:
        super().__init__(reader, variable)
        self.id = variable.id
        self.name = variable.name
        self.layer = variable.layer
        self.dtype = variable.dtype

    def __repr__(self) -> str:
        return f"Variable({self.id!r}, shape {self.shape}, {self.channels:,} channels)"


class Layer(Records):
    """A layer; its records are those of the variable that the tab draws it by, mostly its kernel.

    Attributes:
        id: its path below the model, such as "block/conv1".
        name: its own name.
        group: the path of its parent, empty at the top.
        type: its class, such as "Conv2D".
        variable: the id of the variable that it is drawn by.
        variables: all that were recorded of it, by id.
    """

    def __init__(self, reader: Reader, layer: description.Layer) -> None:
        super().__init__(reader, reader.run.variables[layer.main])
        self.id = layer.id
        self.name = layer.name
        self.group = layer.group
        self.type = layer.type
        self.variable = layer.main
        self.variables = variables_of(reader, layer.variables)

    def __repr__(self) -> str:
        return f"Layer({self.id!r}, {self.type}, {self.channels:,} channels of {self.variable!r})"


def variables_of(reader: Reader, names: tuple[str, ...]) -> Named[Variable]:
    """Variables of a run by their ids.

    Args:
        reader: of the run.
        names: ids that it has.
    """
    known = reader.run.variables
    return Named({one: Variable(reader, known[one]) for one in names}, "variable", "the model")


def layers_of(reader: Reader) -> Named[Layer]:
    """The layers of a run by their ids, in forward order.

    Args:
        reader: of the run.
    """
    layers = {one.id: Layer(reader, one) for one in reader.run.layers}
    return Named(layers, "layer", "the model")
