"""Uses of captures in made-up graphs, against a search of all paths."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st
from tensorflow.core.framework.graph_pb2 import GraphDef

from tb_pastnet.keras.graphs.nodes import uses

KINDS = ["Identity", "IdentityN", "ReadVariableOp", "AssignVariableOp", "NoOp"]


@st.composite
def graphs(draw):
    """Two placeholders and some nodes that take earlier ones, in any order."""
    names = ["a", "b"]
    nodes = []
    for number in range(draw(st.integers(0, 8))):
        taken = draw(st.lists(st.sampled_from(names), max_size=3))
        nodes.append((f"n{number}", draw(st.sampled_from(KINDS)), taken))
        names.append(f"n{number}")
    return draw(st.permutations(nodes))


def concrete(nodes):
    graph = GraphDef()
    for name in ("a", "b"):
        graph.node.add(name=name, op="Placeholder")
    for name, kind, taken in nodes:
        graph.node.add(name=name, op=kind, input=[*(f"{one}:0" for one in taken), "^a"])
    tensors = [SimpleNamespace(op=SimpleNamespace(name=name)) for name in ("a", "b")]
    return SimpleNamespace(
        graph=SimpleNamespace(as_graph_def=lambda: graph),
        inputs=tensors,
        captured_inputs=tensors[1:],
    )


def taken_by(name, nodes):
    """Follows each path from a node, one after the other."""
    found = set()
    for other, kind, taken in nodes:
        if name in taken:
            found |= taken_by(other, nodes) if kind.startswith("Identity") else {kind}
    return found


@given(graphs())
def test_uses_of_any_graph(nodes):
    (found,) = uses(concrete(nodes))
    assert set(found) == taken_by("b", nodes)
    kinds = {name: kind for name, kind, _ in nodes}
    assert all(kinds[place] == kind for kind, place in found.items())
