"""The weights of what is asserted about: a module, a model, or a tree of arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tb_pastnet.core.axes import ChannelAxis, channel_axis
from tb_pastnet.core.names import Called, Names
from tb_pastnet.core.subject import KERAS, TORCH, kind_of
from tb_pastnet.errors import InvalidArgument, UnknownName
from tb_pastnet.testing.bits import Array, bits, form_of, is_array


@dataclass(frozen=True)
class Tensor:
    """A weight or a statistic at its place, as it is now.

    Attributes:
        name: its path, with "/".
        value: the framework's array, tensor or variable.
        axis: how it splits into channels.
        statistic: no gradient trains it, such as a BatchNorm's mean.
        frozen: why the framework's flag lets no optimizer change it; "" if it does.
        called: what a user may call it.
    """

    name: str
    value: Any
    axis: ChannelAxis
    statistic: bool = False
    frozen: str = ""
    called: Called = field(default_factory=Called)

    @property
    def form(self) -> tuple[str, tuple[int, ...]]:
        """Its dtype and shape."""
        return form_of(self.value)

    def bits(self) -> Array:
        """Its bits now, which may be a view."""
        return bits(self.value, self.name)


Tensors = dict[str, Tensor]


def tensors_in(subject: Any) -> Tensors:
    """The tensors of a subject by name, those that are shared once.

    Raises InvalidArgument if there are none, or two have one name.
    """
    listed = _READERS.get(kind_of(subject) or "", _of_tree)(subject)
    tensors: Tensors = {}
    for tensor in listed:
        if tensors.setdefault(tensor.name, tensor) is not tensor:
            raise InvalidArgument(
                f"Could not compare {tensor.name!r}: expected one tensor of this name, got two. "
                f"Rename one: '.' and '/' are the same here."
            )
    if not tensors:
        raise InvalidArgument(
            f"Could not compare {subject!r:.60}: expected a torch module, a built Keras model, or "
            f"a pytree or mapping of arrays, got a {type(subject).__name__} without any. Pass what "
            f"holds the weights."
        )
    return tensors


def is_tree(subject: Any) -> bool:
    """Whether it is no module or model, but a tree of arrays."""
    return kind_of(subject) not in _READERS


def chosen(tensors: Mapping[str, Tensor], wanted: Iterable[Any]) -> list[str]:
    """The names that patterns, names, tensors or layers mean, as `variables=` of a Recorder.

    Raises UnknownName if one fits nothing, and InvalidArgument for what is no name.
    """
    names = Names({name: tensor.called for name, tensor in tensors.items()})
    return names.all([slashed(each) for each in wanted])


def fits_any(tensor: Tensor, wanted: Iterable[Any]) -> bool:
    """Whether one of these means a tensor that came later."""
    for each in wanted:
        with suppress(InvalidArgument, UnknownName):
            if chosen({tensor.name: tensor}, [each]):
                return True
    return False


def slashed(wanted: Any) -> Any:
    """A name or pattern, or several, with "/" for "."; anything else as it is."""
    if isinstance(wanted, list | tuple | set):
        return [slashed(each) for each in wanted]
    return wanted.replace(".", "/") if isinstance(wanted, str) else wanted


def _of_torch(module: Any) -> Iterator[Tensor]:
    from tb_pastnet.torch.module_weights import weights_of

    for weight in weights_of(module):
        entry = weight.entry
        value = entry.value() if entry.computed else entry.stored
        frozen = "" if entry.trained() else "requires_grad is False"
        called = Called(weight.shape, tuple(map(slashed, entry.paths)), entry.handles)
        name = slashed(entry.name)
        yield Tensor(name, value, weight.axis, entry.statistic, frozen, called)


def _of_keras(model: Any) -> Iterator[Tensor]:
    from tb_pastnet.keras.model.weights import axis_of, called, free_name

    if hasattr(model, "weights"):
        from tb_pastnet.keras.model.walk import layer_variables as variables_of
    else:  # a tf.Module
        from tb_pastnet.keras.model.tf_weights import find_variables as variables_of
    taken: set[str] = set()
    for entry in variables_of(model):
        name = free_name(slashed(entry.id), taken)
        taken.add(name)
        value = entry.given if entry.masks is None else entry.variable.numpy()
        flags = all(flag.trainable for flag in entry.flags)
        own = called(entry)
        own = own._replace(names=tuple(map(slashed, own.names)))
        frozen = "" if flags else "trainable is False"
        yield Tensor(name, value, axis_of(name, entry), entry.statistic, frozen, own)


def _of_tree(tree: Any) -> Iterator[Tensor]:
    """With the names and channels of JAX's recorder if JAX is loaded: it knows what is a node."""
    if hasattr(sys.modules.get("jax"), "tree_util"):
        from tb_pastnet.jax.leaf_weights import axis_of, is_statistic
        from tb_pastnet.jax.tree import leaves

        for leaf in leaves(tree):
            if is_array(leaf.value):
                yield _leaf(leaf.name, leaf.value, partial(axis_of, leaf), is_statistic(leaf))
        return
    for path, value in _walk(tree, ()):
        if is_array(value):
            yield _leaf("/".join(path) or "params", value)


def _leaf(
    name: str,
    value: Any,
    find_axis: Callable[[], ChannelAxis] | None = None,
    statistic: bool = False,
) -> Tensor:
    name, (_, shape) = slashed(name), form_of(value)
    plain = channel_axis((), name.rpartition("/")[2], shape)
    axis = plain if find_axis is None or not hasattr(value, "shape") else find_axis()
    return Tensor(name, value, axis, statistic, "", Called(shape, (), (value,)))


def _walk(node: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(node, Mapping):
        for key, child in node.items():
            yield from _walk(child, (*path, str(key)))
    elif isinstance(node, list | tuple):
        keys = getattr(node, "_fields", range(len(node)))
        for key, child in zip(keys, node, strict=True):
            yield from _walk(child, (*path, str(key)))
    else:
        yield path, node


_READERS: Mapping[str, Callable[[Any], Iterable[Tensor]]] = {KERAS: _of_keras, TORCH: _of_torch}
