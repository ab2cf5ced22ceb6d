"""Recipes of JAX: optax, Flax NNX and Equinox, with leaves that are declared frozen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from optax import transforms

import tb_pastnet as pastnet
from tests.leaks.recipe import Recipe, Watch

STEPS = 6
FROZEN_AT = 3
"""The step behind which recipes freeze that freeze while they train."""

X = np.random.default_rng(0).normal(size=(16, 5)).astype(np.float32)
Y = np.random.default_rng(1).normal(size=(16, 2)).astype(np.float32)
MASKS = {"body": False, "head": True}
FROZEN = {"body": True, "head": False}
BODY = {"body/kernel": None, "body/bias": None}
KERNEL = {"body/kernel": None}
Params = dict[str, Any]


def network() -> Params:
    keys = jax.random.split(jax.random.key(0), 3)
    return {
        "body": {
            "kernel": jax.random.normal(keys[0], (5, 4)),
            "bias": jax.random.normal(keys[2], (4,)),
        },
        "head": {"kernel": jax.random.normal(keys[1], (4, 2)), "bias": jnp.ones(2)},
    }


def loss_of(params: Params) -> Any:
    hidden = jax.nn.tanh(X @ params["body"]["kernel"] + params["body"]["bias"])
    return jnp.mean((hidden @ params["head"]["kernel"] + params["head"]["bias"] - Y) ** 2)


def stopped(params: Params) -> Any:
    """The loss, of which no gradient reaches the first layer."""
    return loss_of({**params, "body": jax.lax.stop_gradient(params["body"])})


def _keep(watch: Watch, step: int, params: Params) -> None:
    watch.keep(step, {f"body/{name}": np.asarray(value) for name, value in params["body"].items()})


def train(
    optimizer: optax.GradientTransformation,
    *,
    losses: tuple[Callable[[Params], Any], Callable[[Params], Any]] = (loss_of, loss_of),
    of_gradients: Callable[[Params], Params] = lambda gradients: gradients,
    always: Callable[[Params, Params], Params] = lambda params, _: params,
    on_updated: Mapping[int, Callable[[Params], Params]] | None = None,
    masks: Any = MASKS,
    since: int = 0,
) -> Callable[[Watch], None]:
    """A program that trains; `losses` are that before and that behind the step `FROZEN_AT`.

    Args:
        optimizer: what makes updates of gradients.
        losses: what is differentiated.
        of_gradients: what is done to gradients, behind the step `since`.
        always: what is made of the updated parameters, and those before, in each step.
        on_updated: what is done to the parameters behind a step.
        masks: what is declared behind the step `since`.
        since: 0, or `FROZEN_AT`.
    """

    def update(number: int, params: Params, state: Any) -> tuple[Params, Any]:
        gradients = jax.grad(losses[number > FROZEN_AT])(params)
        gradients = of_gradients(gradients) if number > since else gradients
        updates, state = optimizer.update(gradients, state, params)
        return always(optax.apply_updates(params, updates), params), state

    def program(watch: Watch) -> None:
        params = network()
        state = optimizer.init(params)
        step = jax.jit(update, static_argnums=0, donate_argnums=(1, 2))
        declared = masks if since == 0 else None
        with pastnet.jax.Recorder(
            watch.folder, params, every=1, trainable=declared, opt_state=state, audit=watch.audit
        ) as recorder:
            _keep(watch, 0, params)
            for number in range(1, STEPS + 1):
                phase = FROZEN_AT + (number > FROZEN_AT)  # two programs, not six
                params, state = step(phase, params, state)
                params = (on_updated or {}).get(number, lambda given: given)(params)
                recorder.record(number, params, opt_state=state)
                _keep(watch, number, params)
                if number == since:
                    recorder.declare(params, trainable=masks, opt_state=state)

    return program


def _zeroed(gradients: Params) -> Params:
    return {**gradients, "body": jax.tree.map(jnp.zeros_like, gradients["body"])}


HELD = np.zeros((5, 4), bool)
HELD[:, 1] = True


def _zeroed_channel(gradients: Params) -> Params:
    body = gradients["body"]
    return {**gradients, "body": {**body, "kernel": body["kernel"] * ~HELD}}


CHANNEL = {"body": {"kernel": ~HELD, "bias": True}, "head": True}


def _load(params: Params) -> Params:
    return jax.tree.map(lambda value: value + 0.5, params)


def _averages(params: Params) -> Params:
    """An EMA that was begun with other values."""
    return optax.incremental_update(_load(network()), params, 0.1)  # type: ignore[return-value]


def _decayed(optimizer: optax.GradientTransformation) -> optax.GradientTransformation:
    return optax.chain(optimizer, optax.add_decayed_weights(-1e-3))


def _put_back(params: Params, old: Params) -> Params:
    return {**params, "body": old["body"]}


ADAM, ADAMW = optax.adam(1e-2), optax.adamw(1e-2, weight_decay=0.1)
TRAINED_ONLY = optax.partition(
    {"train": ADAMW, "freeze": optax.set_to_zero()}, {"body": "freeze", "head": "train"}
)
MISSPELT = optax.partition(
    {"train": ADAM, "freeze": optax.set_to_zero()},
    {"body": {"kernel": "freeze", "bias": "train"}, "head": "train"},
)


class _Module(nnx.Module):
    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.body = nnx.Linear(5, 4, rngs=rngs, bias_init=nnx.initializers.normal())
        self.head = nnx.Linear(4, 2, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.head(jax.nn.tanh(self.body(x)))


def _nnx(wrt: Any, *, stop: bool) -> Callable[[Watch], None]:
    """`nnx.Optimizer` of some parameters; the loss may stop gradients of the others."""

    def program(watch: Watch) -> None:
        model = _Module()
        optimizer = nnx.Optimizer(model, ADAMW, wrt=wrt)

        def loss(model: Any) -> Any:
            hidden = jax.nn.tanh(model.body(X))
            hidden = jax.lax.stop_gradient(hidden) if stop else hidden
            return jnp.mean((model.head(hidden) - Y) ** 2)

        masks = nnx.map_state(lambda path, _: path[0] == "head", nnx.state(model, nnx.Param))
        params = nnx.state(model, nnx.Param)
        with pastnet.jax.Recorder(
            watch.folder,
            params,
            every=1,
            trainable=masks,
            opt_state=optimizer.opt_state,
            audit=watch.audit,
        ) as recorder:
            for number in range(STEPS + 1):
                if number:
                    gradients = nnx.grad(loss, argnums=nnx.DiffState(0, wrt))(model)
                    optimizer.update(model, gradients)
                    params = nnx.state(model, nnx.Param)
                    recorder.record(number, params, opt_state=optimizer.opt_state)
                body = model.body
                watch.keep(
                    number,
                    {
                        "body/kernel": np.asarray(body.kernel[...]),
                        "body/bias": np.asarray(body.bias[...]),
                    },
                )

    return program


def _of_head(path: Any, _: Any) -> bool:
    return bool(path[0] == "head")


def _eqx(*, partitioned: bool) -> Callable[[Watch], None]:
    """`eqx.partition`, or gradients that are stopped under an optimizer of all arrays."""

    def program(watch: Watch) -> None:
        keys = jax.random.split(jax.random.key(0))
        model = [eqx.nn.Linear(5, 4, key=keys[0]), eqx.nn.Linear(4, 2, key=keys[1])]
        spec = [jax.tree.map(lambda _: False, model[0]), jax.tree.map(eqx.is_array, model[1])]
        own = spec if partitioned else eqx.is_array
        state = ADAMW.init(eqx.filter(model, own))

        def loss(trained: Any, static: Any) -> Any:
            body, head = eqx.combine(trained, static)
            hidden = jax.lax.stop_gradient(jax.vmap(body)(X))
            return jnp.mean((jax.vmap(head)(jax.nn.tanh(hidden)) - Y) ** 2)

        with pastnet.jax.Recorder(
            watch.folder,
            model,
            every=1,
            trainable=[False, True],
            opt_state=state,
            audit=watch.audit,
        ) as recorder:
            for number in range(STEPS + 1):
                if number:
                    trained, static = eqx.partition(model, own)
                    gradients = eqx.filter_grad(loss)(trained, static)
                    updates, state = ADAMW.update(gradients, state, trained)
                    model = eqx.apply_updates(model, updates)
                    recorder.record(number, model, opt_state=state)
                watch.keep(
                    number,
                    {
                        f"0/{name}": np.asarray(getattr(model[0], name))
                        for name in ("weight", "bias")
                    },
                )

    return program


EQX = {"0/weight": None, "0/bias": None}


def _of(name: str, program: Callable[[Watch], None], advice: str, **settings: Any) -> Recipe:
    settings = {"stays": BODY, "axis": -1, "framework": "optax", **settings}
    return Recipe(name, program=program, advice=advice, **settings)


TO_ZERO = "put `optax.set_to_zero` last"
RECIPES = [
    _of("`optax.masked(adamw, mask)`: gradients of the other leaves pass through", train(optax.masked(ADAMW, MASKS)), TO_ZERO, moved_by="unmasked_update", begins=1),
    _of("`optax.partition` (`multi_transform`) with `set_to_zero`", train(TRAINED_ONLY), "the updates are zero"),
    _of("`chain(adamw, masked(set_to_zero, frozen))`", train(optax.chain(ADAMW, optax.masked(optax.set_to_zero(), FROZEN))), "the updates are zero"),
    _of("`optax.transforms.selective_transform` with a mask of the frozen leaves", train(transforms.selective_transform(ADAMW, freeze_mask=FROZEN)), "the updates are zero"),
    _of("`optax.transforms.freeze` before `adamw`", train(optax.chain(transforms.freeze(FROZEN), ADAMW)), TO_ZERO, moved_by="weight_decay", begins=1),
    _of("`optax.transforms.freeze` after `adamw`", train(optax.chain(ADAMW, transforms.freeze(FROZEN))), "the updates are zero"),
    _of("Gradients set to zero before `adamw`", train(ADAMW, of_gradients=_zeroed), TO_ZERO, moved_by="weight_decay", begins=1),
    _of("Gradients set to zero before `adam`, from the start", train(ADAM, of_gradients=_zeroed), "the optimizer's averages of these weights stay zero"),
    _of("Gradients set to zero before `adam`, during training", train(ADAM, of_gradients=_zeroed, since=FROZEN_AT), TO_ZERO, moved_by="momentum", begins=FROZEN_AT + 1, since=FROZEN_AT),
    _of("`add_decayed_weights` after the mask", train(_decayed(optax.chain(ADAM, optax.masked(optax.set_to_zero(), FROZEN)))), "decay inside the mask", moved_by="weight_decay", begins=1),
    _of("`add_decayed_weights(mask=…)` of the trained leaves", train(optax.chain(ADAM, optax.masked(optax.set_to_zero(), FROZEN), optax.add_decayed_weights(-1e-3, mask=MASKS))), "the updates are zero"),
    _of("`stop_gradient` in the loss, `adamw`", train(ADAMW, losses=(stopped, stopped)), TO_ZERO, moved_by="weight_decay", begins=1),
    _of("`stop_gradient` in the loss, `sgd`", train(optax.sgd(0.1), losses=(stopped, stopped)), "zero gradients give zero updates"),
    _of("`stop_gradient` during training, `sgd` with momentum", train(optax.sgd(0.1, momentum=0.9), losses=(loss_of, stopped), since=FROZEN_AT), TO_ZERO, moved_by="momentum", begins=FROZEN_AT + 1, since=FROZEN_AT),
    _of("A channel's gradients times zero, `sgd`", train(optax.sgd(0.1), of_gradients=_zeroed_channel, masks=CHANNEL), "zero gradients give zero updates", stays={"body/kernel": HELD}),
    _of("A channel's gradients times zero, `adam`, during training", train(ADAM, of_gradients=_zeroed_channel, masks=CHANNEL, since=FROZEN_AT), "restore the values, or zero the updates", stays={"body/kernel": HELD}, moved_by="momentum", begins=FROZEN_AT + 1, since=FROZEN_AT),
    _of("A frozen channel that the optimizer still updates, `adam`", train(ADAM, masks=CHANNEL), "zero the updates", stays={"body/kernel": HELD}, moved_by="gradient", begins=1),
    _of("Labels of `partition` that miss the bias", train(MISSPELT), "label whole layers", moved_by="gradient", begins=1, stays=BODY),
    _of("Old leaves restored after each update, `adamw`", train(ADAMW, always=_put_back), "exact under every optimizer"),
    _of("An EMA (`incremental_update`) copied back over all leaves", train(TRAINED_ONLY, on_updated={5: _averages}), "copy back only trained weights", moved_by="unmasked_update", begins=5),
    _of("Another checkpoint restored during training", train(TRAINED_ONLY, on_updated={5: _load}), "restore first, then freeze", moved_by="unmasked_update", begins=5),
    _of("`nnx.Optimizer(model, adamw, wrt=` of the head `)`", _nnx(nnx.All(nnx.Param, _of_head), stop=False), "these weights aren't in the optimizer", framework="Flax NNX"),
    _of("`nnx.Optimizer(…, wrt=nnx.Param)`, `stop_gradient` in the loss", _nnx(nnx.Param, stop=True), "pass only trained parameters as `wrt=`", framework="Flax NNX", moved_by="weight_decay", begins=1, stays=BODY),
    _of("`eqx.partition` with a filter for trained leaves, `adamw`", _eqx(partitioned=True), "these weights aren't in the optimizer", framework="Equinox", stays=EQX, axis=0),
    _of("`eqx.is_array` for all, `stop_gradient` in the loss, `adamw`", _eqx(partitioned=False), "partition with a filter for trained leaves", framework="Equinox", moved_by="weight_decay", begins=1, stays=EQX, axis=0),
]  # fmt: skip
