"""The programs: each is made anew, with the same weights, at each call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from tests.programs.watched import Program

PROGRAMS: dict[str, Callable[[Path], Program]] = {}
Callbacks = list[keras.callbacks.Callback]


def program(make: Callable[[Path], Program]) -> Callable[[Path], Program]:
    """Lists a program; it gets a directory of its own."""
    PROGRAMS[make.__name__] = make
    return make


def data(outputs: int = 1, count: int = 48) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(count, 6)).astype("f4"), rng.normal(size=(count, outputs)).astype("f4")


def fitted(
    model: keras.Model, frozen: Iterable[str] = (), epochs: int = 2, x: Any = None
) -> Program:
    """A model that one call of `fit` trains, on the data or other inputs."""
    inputs, y = data()

    def train(callbacks: Callbacks) -> None:
        given = inputs if x is None else x
        model.fit(given, y, 8, epochs, verbose=0, shuffle=False, callbacks=callbacks)

    return Program(model, train, set(frozen))


def fit(model: keras.Model, batches: tf.data.Dataset, callbacks: Callbacks) -> None:
    model.fit(batches, epochs=2, verbose=0, shuffle=False, callbacks=callbacks)


def dense(*units: int, name: str | None = None) -> keras.Sequential:
    parts = [layers.Dense(size, "tanh") for size in units]
    return keras.Sequential([keras.Input((6,)), *parts], name=name)


class GAN(keras.Model):
    """Two networks, two optimizers, and no `call`."""

    def __init__(self, critics: int = 1) -> None:
        super().__init__()
        self.critics = critics
        self.discriminator = dense(5, 1, name="discriminator")
        self.generator = keras.Sequential(
            [keras.Input((3,)), layers.Dense(4, "relu"), layers.Dense(6)], name="generator"
        )

    def compile(self, d_optimizer: Any, g_optimizer: Any) -> None:
        super().compile()
        self.d_optimizer, self.g_optimizer = d_optimizer, g_optimizer

    def train_step(self, batch: Any) -> dict[str, Any]:
        real, noise = batch
        for _ in range(self.critics):
            with tf.GradientTape() as tape:
                fake = self.generator(noise)
                loss = ops.mean(self.discriminator(fake)) - ops.mean(self.discriminator(real))
                loss += 10 * self.penalty(real, fake)
            self.step(tape, loss, self.discriminator, self.d_optimizer)
        with tf.GradientTape() as tape:
            loss = -ops.mean(self.discriminator(self.generator(noise)))
        self.step(tape, loss, self.generator, self.g_optimizer)
        return {"loss": loss}

    def penalty(self, real: Any, fake: Any) -> Any:
        return 0.0

    @staticmethod
    def step(tape: tf.GradientTape, loss: Any, part: keras.Model, optimizer: Any) -> None:
        weights = part.trainable_weights
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))


class WGAN(GAN):
    """With a penalty on the gradient between real and fake, and three steps of the critic."""

    def __init__(self) -> None:
        super().__init__(critics=3)

    def penalty(self, real: Any, fake: Any) -> Any:
        middle = (real + fake) / 2
        with tf.GradientTape() as tape:
            tape.watch(middle)
            score = self.discriminator(middle)
        norm = ops.sqrt(ops.sum(ops.square(tape.gradient(score, middle)), 1) + 1e-12)
        return ops.mean(ops.square(norm - 1))


def adversarial(model: GAN) -> Program:
    model.compile(keras.optimizers.Adam(3e-3), keras.optimizers.Adam(1e-3))
    real, _ = data()
    noise = np.random.default_rng(1).normal(size=(len(real), 3)).astype("f4")
    batches = tf.data.Dataset.from_tensor_slices((real, noise)).batch(8)
    return Program(model, lambda given: fit(model, batches, given))


@program
def gan(_: Path) -> Program:
    return adversarial(GAN())


@program
def wgan_gp(_: Path) -> Program:
    return adversarial(WGAN())


class VAE(keras.Model):
    """Encoder and decoder with a step of their own, and no `call`."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = dense(5, 4, name="encoder")
        self.decoder = keras.Sequential([keras.Input((2,)), layers.Dense(6)], name="decoder")

    def train_step(self, x: Any) -> dict[str, Any]:
        with tf.GradientTape() as tape:
            mean, log_variance = ops.split(self.encoder(x), 2, axis=-1)
            sample = mean + ops.exp(log_variance / 2) * 0.1
            loss = ops.mean(ops.square(x - self.decoder(sample)))
            loss += ops.mean(ops.square(mean) + ops.exp(log_variance) - 1 - log_variance)
        gradients = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_weights, strict=True))
        return {"loss": loss}


@program
def vae(_: Path) -> Program:
    model = VAE()
    model.compile(keras.optimizers.Adam(1e-2))
    batches = tf.data.Dataset.from_tensor_slices(data()[0]).batch(8)
    return Program(model, lambda given: fit(model, batches, given))


class Distiller(keras.Model):
    """A student that follows a frozen teacher."""

    def __init__(self) -> None:
        super().__init__()
        self.teacher, self.student = dense(7, 3, name="teacher"), dense(4, 3, name="student")
        self.teacher.trainable = False

    def train_step(self, batch: Any) -> dict[str, Any]:
        x, _ = batch
        wanted = self.teacher(x, training=False)
        with tf.GradientTape() as tape:
            loss = ops.mean(ops.square(self.student(x, training=True) - wanted))
        weights = self.student.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"loss": loss}


@program
def distillation(_: Path) -> Program:
    model = Distiller()
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9))
    return fitted(model, {"teacher"})


@program
def subclassed_without_weights_before_its_first_batch(_: Path) -> Program:
    class Lazy(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = layers.Dense(5, "relu"), layers.Dense(1)

        def call(self, x: Any) -> Any:
            return self.last(self.first(x))

    model = Lazy()
    model.compile("adam", "mse")
    return fitted(model)


@program
def nested_lists_and_dictionaries(_: Path) -> Program:
    class Nested(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = [[layers.Dense(4, "tanh"), layers.Dense(4)] for _ in range(2)]
            self.heads = {"mean": layers.Dense(1), "other": layers.Dense(1)}

        def call(self, x: Any) -> Any:
            for first, second in self.blocks:
                x = second(first(x))
            return self.heads["mean"](x) + self.heads["other"](x)

    model = Nested()
    model(data()[0][:1])
    model.compile("sgd", "mse")
    return fitted(model)


@program
def shared_layer_in_two_branches(_: Path) -> Program:
    one, two = keras.Input((6,)), keras.Input((6,))
    shared = layers.Dense(4, "tanh")
    model = keras.Model([one, two], layers.Dense(1)(ops.abs(shared(one) - shared(two))))
    model.compile("adam", "mse")
    x = data()[0]
    return fitted(model, x=[x, x[::-1]])


def backbone() -> tuple[keras.Model, keras.Model]:
    """A base of three layers, and a head on it."""
    base = dense(5, 5, 4, name="base")
    inputs = keras.Input((6,))
    return base, keras.Model(inputs, layers.Dense(1)(base(inputs)))


@program
def functional_in_functional(_: Path) -> Program:
    _, model = backbone()
    model.compile("adam", "mse")
    return fitted(model)


@program
def frozen_base_with_its_last_layer_unfrozen(_: Path) -> Program:
    base, model = backbone()
    base.trainable = False
    base.layers[-1].trainable = True
    model.compile("adam", "mse")
    return fitted(model, {"base/dense", "base/dense_1"})


@program
def last_layer_unfrozen_between_two_fits(_: Path) -> Program:
    base, model = backbone()
    base.trainable = False
    x, y = data()

    def train(callbacks: Callbacks) -> None:
        for last in (False, True):
            base.layers[-1].trainable = last
            model.compile(keras.optimizers.Adam(1e-3), "mse")
            model.fit(x, y, 8, 1, verbose=0, shuffle=False, callbacks=callbacks)

    return Program(model, train, {"base/dense", "base/dense_1"})


@program
def only_one_variable_unfrozen(_: Path) -> Program:
    base, model = backbone()
    base.trainable = False
    base.layers[1].bias.trainable = True
    model.compile("adam", "mse")
    return fitted(model, {"base/dense", "base/dense_1/kernel", "base/dense_2"})


@program
def unfrozen_from_the_inside_out(_: Path) -> Program:
    base, model = backbone()
    model.trainable = False
    model.trainable = True
    for layer in base.layers[:2]:
        layer.trainable = False
    model.compile("adam", "mse")
    return fitted(model, {"base/dense", "base/dense_1"})


@program
def mixed_precision_and_several_steps_at_once(_: Path) -> Program:
    policy = keras.mixed_precision.Policy("mixed_float16")
    model = keras.Sequential([keras.Input((6,)), layers.Dense(4, dtype=policy), layers.Dense(1)])
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(1e-2), initial_scale=8.0)
    model.compile(optimizer, "mse", steps_per_execution=2)
    return fitted(model)


@program
def compiled_by_xla(_: Path) -> Program:
    model = dense(4, 1)
    model.compile(keras.optimizers.RMSprop(1e-2), "mse", jit_compile=True)
    return fitted(model)


@program
def accumulated_gradients(_: Path) -> Program:
    model = dense(4, 1)
    model.compile(keras.optimizers.Adam(1e-2, gradient_accumulation_steps=3), "mse")
    return fitted(model)


@program
def siamese_with_embeddings(_: Path) -> Program:
    words = keras.Input((3,), dtype="int32")
    encoder = keras.Sequential([keras.Input((3,)), layers.Embedding(9, 4), layers.Flatten()])
    model = keras.Model(words, layers.Dense(1)(encoder(words)))
    model.compile("adam", "mse")
    return fitted(model, x=np.random.default_rng(0).integers(0, 9, (48, 3)))


@program
def simclr(_: Path) -> Program:
    """A contrastive loss between two views of a batch, by a head that is thrown away later."""

    class SimCLR(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.projector = dense(5, 4, name="encoder"), layers.Dense(3)
            self.projector.build((None, 4))

        def train_step(self, x: Any) -> dict[str, Any]:
            with tf.GradientTape() as tape:
                sides = [self.projector(self.encoder(x + shift)) for shift in (-0.1, 0.1)]
                one, other = (ops.normalize(side, axis=1) for side in sides)
                likeness = ops.matmul(one, ops.transpose(other)) / 0.5
                own = ops.arange(ops.shape(x)[0])
                losses = ops.sparse_categorical_crossentropy(own, likeness, from_logits=True)
                loss = ops.mean(losses)
            gradients = tape.gradient(loss, self.trainable_weights)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_weights, strict=True))
            return {"loss": loss}

    model = SimCLR()
    model.compile(keras.optimizers.Adam(1e-2))
    batches = tf.data.Dataset.from_tensor_slices(data()[0]).batch(8)
    return Program(model, lambda given: fit(model, batches, given))


@program
def actor_critic(_: Path) -> Program:
    """Two optimizers in a dictionary, and a critic that steps twice as often."""

    class ActorCritic(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.actor, self.critic = dense(4, 2, name="actor"), dense(4, 1, name="critic")
            self.own = {name: keras.optimizers.Adam(1e-2) for name in ("actor", "critic")}

        def train_step(self, batch: Any) -> dict[str, Any]:
            x, reward = batch
            for _ in range(2):
                with tf.GradientTape() as tape:
                    loss = ops.mean(ops.square(self.critic(x) - reward))
                GAN.step(tape, loss, self.critic, self.own["critic"])
            with tf.GradientTape() as tape:
                chosen = ops.log_softmax(self.actor(x))[:, :1]
                loss = -ops.mean(chosen * ops.stop_gradient(reward - self.critic(x)))
            GAN.step(tape, loss, self.actor, self.own["actor"])
            return {"loss": loss}

    model = ActorCritic()
    model.compile()
    batches = tf.data.Dataset.from_tensor_slices(data()).batch(8)
    return Program(model, lambda given: fit(model, batches, given))


@program
def vision_transformer(_: Path) -> Program:
    inputs = keras.Input((6, 1))
    patches = layers.Dense(4)(inputs)
    place = layers.Embedding(6, 4)(ops.arange(6))
    x = patches + place
    x = x + layers.MultiHeadAttention(1, 4)(layers.LayerNormalization()(x), x)
    x = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))
    model = keras.Model(inputs, layers.Dense(1)(x))
    model.compile(keras.optimizers.AdamW(1e-2, weight_decay=0.01), "mse")
    return fitted(model, x=data()[0][..., None])


@program
def resumed_by_initial_epoch(_: Path) -> Program:
    model = dense(4, 1)
    model.compile("adam", "mse")
    x, y = data()

    def train(callbacks: Callbacks) -> None:
        for start in (0, 1):
            model.fit(x, y, 8, start + 1, 0, callbacks, initial_epoch=start, shuffle=False)

    return Program(model, train)


@program
def averaged_weights(_: Path) -> Program:
    model = dense(4, 1)
    optimizer = keras.optimizers.SGD(0.05, use_ema=True, ema_momentum=0.9)
    model.compile(optimizer, "mse")
    return fitted(model, epochs=1)


@program
def warm_up_by_a_schedule(_: Path) -> Program:
    schedule = keras.optimizers.schedules.PolynomialDecay(0.0, 10, 0.01)
    model = dense(4, 1)
    model.compile(keras.optimizers.Adam(schedule), "mse")
    return fitted(model)


@program
def head_of_a_pretrained_base(_: Path) -> Program:
    """Features first, as in the guides: the base is called with training=False."""
    base = keras.Sequential(
        [keras.Input((6,)), layers.Dense(5), layers.BatchNormalization(), layers.ReLU()],
        name="base",
    )
    base.trainable = False
    inputs = keras.Input((6,))
    model = keras.Model(inputs, layers.Dense(1)(base(inputs, training=False)))
    model.compile("adam", "mse")
    return fitted(
        model, {"base/dense", "base/batch_normalization/gamma", "base/batch_normalization/beta"}
    )


@program
def loop_of_train_on_batch_in_a_callback_list(_: Path) -> Program:
    """A loop of the author's own, with Keras's callbacks."""
    model = dense(4, 1)
    model.compile("adam", "mse")
    x, y = data()

    def train(callbacks: Callbacks) -> None:
        every = keras.callbacks.CallbackList(callbacks, model=model, verbose=0, epochs=2, steps=6)
        every.on_train_begin()
        for epoch in range(2):
            every.on_epoch_begin(epoch)
            for batch in range(6):
                every.on_train_batch_begin(batch)
                part = slice(8 * batch, 8 * batch + 8)
                every.on_train_batch_end(
                    batch, model.train_on_batch(x[part], y[part], return_dict=True)
                )
            every.on_epoch_end(epoch)
        every.on_train_end()

    return Program(model, train)


class Follower(keras.Model):
    """An online network, and a target that follows it after each step: BYOL with a predictor."""

    def __init__(self, *, predicts: bool) -> None:
        super().__init__()
        self.online, self.target = dense(5, 4, name="online"), dense(5, 4, name="target")
        self.target.set_weights(self.online.get_weights())
        self.target.trainable = False
        self.predictor = (
            keras.Sequential([keras.Input((4,)), layers.Dense(4)]) if predicts else None
        )

    def train_step(self, x: Any) -> dict[str, Any]:
        wanted = self.target(x[:, ::-1])
        with tf.GradientTape() as tape:
            found = self.online(x)
            if self.predictor is not None:
                found = self.predictor(found)
            loss = ops.mean(ops.square(found - wanted))
        weights = self.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        for target, online in zip(self.target.weights, self.online.weights, strict=True):
            target.assign(0.9 * target + 0.1 * online)
        return {"loss": loss}


def following(model: Follower) -> Program:
    model.compile(keras.optimizers.Adam(1e-2))
    batches = tf.data.Dataset.from_tensor_slices(data()[0]).batch(8)
    return Program(model, lambda given: fit(model, batches, given), follows=("target/*",))


@program
def byol(_: Path) -> Program:
    return following(Follower(predicts=True))


@program
def mean_teacher(_: Path) -> Program:
    return following(Follower(predicts=False))


class DDPG(keras.Model):
    """Actor and critic, each with an optimizer and a target that follows it."""

    def __init__(self) -> None:
        super().__init__()
        self.actor, self.critic = dense(4, 2, name="actor"), self.judge("critic")
        self.actor_target, self.critic_target = (
            dense(4, 2, name="actor_target"),
            self.judge("critic_target"),
        )
        self.pairs = [(self.actor, self.actor_target), (self.critic, self.critic_target)]
        for now, late in self.pairs:
            late.set_weights(now.get_weights())
            late.trainable = False
        self.optimizers = {
            "actor": keras.optimizers.Adam(1e-3),
            "critic": keras.optimizers.SGD(0.1),
        }

    @staticmethod
    def judge(name: str) -> keras.Model:
        return keras.Sequential(
            [keras.Input((8,)), layers.Dense(4, "relu"), layers.Dense(1)], name=name
        )

    def train_step(self, batch: Any) -> dict[str, Any]:
        state, reward = batch
        later = ops.concatenate([state, self.actor_target(state)], 1)
        wanted = reward + 0.9 * self.critic_target(later)
        with tf.GradientTape() as tape:
            taken = ops.concatenate([state, ops.stop_gradient(self.actor(state))], 1)
            loss = ops.mean(ops.square(self.critic(taken) - wanted))
        GAN.step(tape, loss, self.critic, self.optimizers["critic"])
        with tf.GradientTape() as tape:
            value = -ops.mean(self.critic(ops.concatenate([state, self.actor(state)], 1)))
        GAN.step(tape, value, self.actor, self.optimizers["actor"])
        for now, late in self.pairs:
            for source, target in zip(now.weights, late.weights, strict=True):
                target.assign(0.95 * target + 0.05 * source)
        return {"loss": loss}


@program
def ddpg(_: Path) -> Program:
    model = DDPG()
    model.compile()
    batches = tf.data.Dataset.from_tensor_slices(data()).batch(8)
    return Program(
        model,
        lambda given: fit(model, batches, given),
        follows=("actor_target/*", "critic_target/*"),
    )


@program
def efficientnet_fine_tuned_in_two_phases(_: Path) -> Program:
    base = keras.applications.EfficientNetB0(
        include_top=False, weights=None, input_shape=(32, 32, 3), pooling="avg"
    )
    named = {
        f"{base.name}/{layer.name}/{weight.name}": layer
        for layer in base.layers
        for weight in layer.trainable_weights
    }
    base.trainable = False
    inputs = keras.Input((32, 32, 3))
    model = keras.Model(inputs, layers.Dense(2)(base(inputs, training=False)))
    x = np.random.default_rng(2).normal(size=(12, 32, 32, 3)).astype("f4")
    y = np.arange(12) % 2

    def train(callbacks: Callbacks) -> None:
        for rate, opened in ((1e-3, 0), (1e-5, 20)):
            for layer in base.layers[len(base.layers) - opened :]:
                layer.trainable = not isinstance(layer, layers.BatchNormalization)
            model.compile(
                keras.optimizers.Adam(rate), keras.losses.SparseCategoricalCrossentropy(True)
            )
            model.fit(x, y, 4, 2, verbose=0, shuffle=False, callbacks=callbacks)

    trains = [x for x in base.layers[-20:] if not isinstance(x, layers.BatchNormalization)]
    return Program(model, train, {name for name, layer in named.items() if layer not in trains})


@program
def second_of_several_models_in_a_process(_: Path) -> Program:
    others = [dense(5, 1) for _ in range(3)]
    for other in others[:2]:
        other.compile("adam", "mse")
        other.fit(*data(), 8, verbose=0)
    others[2].compile("adam", "mse")
    return fitted(others[2])


@program
def low_rank_adaptation(_: Path) -> Program:
    """LoRA in a Dense, an Embedding and an EinsumDense; all else is frozen, but the head."""
    inputs = keras.Input((4,), dtype="int32")
    parts = [
        layers.Embedding(10, 6, name="embedding"),
        layers.EinsumDense("abc,cd->abd", (4, 5), name="einsum"),
        layers.Dense(4, "tanh", name="dense"),
    ]
    x = inputs
    for part in parts:
        x = part(x)
    model = keras.Model(inputs, layers.Dense(1, name="head")(layers.Flatten()(x)))
    for part in parts:
        part.enable_lora(2)
    tokens = np.random.default_rng(3).integers(0, 10, (48, 4))
    model.compile(keras.optimizers.Adam(1e-2), "mse")
    return fitted(model, {"embedding/embeddings", "einsum/kernel", "dense/kernel"}, x=tokens)


@program
def head_on_an_int8_base(_: Path) -> Program:
    """A base whose kernels are quantized for inference, and a head that is trained."""
    base = dense(8, 4, name="base")
    for layer in base.layers:
        layer.quantize("int8")
    base.trainable = False
    inputs = keras.Input((6,))
    model = keras.Model(inputs, layers.Dense(1, name="head")(base(inputs)))
    model.compile("adam", "mse")
    return fitted(model, {"base/dense/bias", "base/dense_1/bias"})
