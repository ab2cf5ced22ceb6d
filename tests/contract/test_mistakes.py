"""Natural mistakes: what a user writes, and that the answer names the argument and the mend.

Each row is the code, a word for what is wrong, and the key word of how to mend it.
"""

from __future__ import annotations

import io
import re
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_pastnet as pastnet
from tb_pastnet.cli.main import UNUSABLE, main
from tb_pastnet.errors import PastNetError, UnknownArgument

SPELT = [
    ("PastNetCallback(log_dir=run)", "log_dir=", "Write logdir="),
    ("PastNetCallback(run, histogram_freq=1)", "histogram_freq=", "Write every="),
    ("PastNetCallback(run, update_freq='epoch')", "update_freq=", "Write every="),
    ("PastNetCallback(run, write_graph=True)", "write_graph=", "keras.callbacks.TensorBoard"),
    ("PastNetCallback(run, patience=3)", "patience=", "on_violation='stop'"),
    ("PastNetCallback(run, evry=3)", "evry=", "Write every="),
    ("PastNetCallback(run, layers=['first'])", "layers=", "Write variables="),
    ("PastNetCallback(run, validation_data=x)", "validation_data=", "Write probe="),
    ("PastNetCallback()", "logdir=", "PastNetCallback(logdir=…)"),
    ("Recorder(run)", "model=", "Recorder(model=…)"),
    ("Recorder(run, model, optimizer=model.optimizer)", "optimizer=", "Write learning_rate="),
    ("Masks(model, sparsity=0.5)", "sparsity=", "some of model, optimizer, enforce"),
    ("masks.prune('first/kernel', mask=ones)", "mask=", "Write kept="),
    ("masks.freeze('first/kernel', mask=ones)", "mask=", "Write trainable="),
    ("masks.prune('first/kernel', channel=[1])", "channel=", "Write channels="),
    ("masks.prune_smallest(target_sparsity=0.5)", "target_sparsity=", "Write sparsity="),
    ("masks.prune_smallest(0.5, layers=['first'])", "layers=", "Write variables="),
    ("masks.prune_blocks('first', sparsity_m_by_n=2)", "m_by_n=", "Write nonzeros_per_block="),
    ("masks.prune_below(0.1)", "threshold=", "prune_below(threshold=…)"),
    ("PruningCallback(masks, pruning_schedule=once)", "pruning_schedule=", "Write schedule="),
    ("PruningCallback(masks, once, frequency=10)", "frequency=", "Write every="),
    ("PolynomialDecay(initial_sparsity=0.1)", "initial_sparsity=", "Write initial="),
    ("PolynomialDecay(0, 0.5, 0, 9, frequency=9)", "frequency=", "every= to PruningCallback"),
    ("OneShot(0.5)", "step=", "OneShot(step=…)"),
    ("PastNetwork(model, example_inputs=x)", "example_inputs=", "Write example="),
    ("clone_network(model, weight='fresh')", "weight=", "Write weights="),
    ("summary.channels('a', x, x, axis=1)", "axis=", "Write channel_axis="),
    ("read(log_dir=run)", "log_dir=", "Write logdir="),
    ("v1.Masks(scope='net')", "scope=", "Write variables="),
    ("v1.RecorderHook(run, save_steps=9)", "save_steps=", "Write every="),
    ("numpy.Recorder(run, {'w': get}, lr=0.1)", "lr=", "Write learning_rate="),
    ("numpy.Recorder(run, {'w': get}, masks={'w': False})", "masks=", "Write trainable="),
    ("numpy.Recorder(run, {'w': get}, frozen={'w': True})", "frozen=", "False for what is frozen"),
    ("numpy.Recorder(run, weights={'w': get})", "weights=", "Write arrays="),
    ("numpy.Recorder(run, {'w': get}, 5)", "got 3", "Recorder(logdir, arrays)"),
    ("Recorder(run, model, trainable={'first/kernel': False})", "trainable=", "pastnet.Masks"),
    ("Recorder(run, model, kept={'first/kernel': ones})", "kept=", "pastnet.Masks(model)"),
    ("PastNetCallback(run, initial_step=9)", "initial_step=", "steps are counted"),
    ("PastNetCallback(run, 5)", "got 2", "PastNetCallback(logdir)"),
    ("v1.Recorder(run, 'net')", "got 2", "Recorder(logdir)"),
    ("v1.Recorder(run, scope='net')", "scope=", "Write variables="),
    ("v1.Recorder(run, initial_step=9)", "initial_step=", "restart(step)"),
]
VALUES = [
    ("PastNetCallback(None)", "logdir=", "logdir='runs/a'"),
    ("PastNetCallback('')", "got ''", "logdir='runs/a'"),
    ("PastNetCallback('runs/\\0')", "logdir=", "logdir='runs/a'"),
    ("PastNetCallback(model)", "logdir=", "logdir='runs/a'"),
    ("PastNetCallback(run / 'pastnet.0001.c397f2d6')", "logdir=", "the run's own directory"),
    ("PastNetCallback(run, every=0)", "every=", "every=1"),
    ("PastNetCallback(run, every='epoch')", "every=", "every=1"),
    ("PastNetCallback(run, past='epochs')", "past=", "'epoch'"),
    ("PastNetCallback(run, past=0)", "past=", "from 1"),
    ("PastNetCallback(run, budget=5)", "budget=", "budget=0.01"),
    ("PastNetCallback(run, on_violation='raise')", "on_violation=", "'stop'"),
    ("PastNetCallback(run, log='wandb')", "log=", "wandb.log"),
    ("PastNetCallback(run, exit_timeout='1m')", "exit_timeout", "seconds"),
    ("PastNetCallback(run).set_model(Torch())", "model=", "pastnet.torch.Recorder"),
    ("PastNetCallback(run).set_model(legacy)", "tf_keras", "TF_USE_LEGACY_KERAS"),
    ("fit(PastNetCallback(file))", "logdir", "Choose another"),
    ("fit(PastNetCallback(run, variables=['nothing']))", "'nothing'", "path below the model"),
    ("fit(PastNetCallback(run, variables='frist/*'))", "'frist/*'", "Correct it"),
    ("fit(PastNetCallback(run, channel_axis=-1))", "channel_axis=", "{'first/kernel': …}"),
    ("fit(PastNetCallback(run, channel_axis={'first/kernel': 'out'}))", "channel_axis=", "-1"),
    ("fit(PastNetCallback(run, learning_rate='adam'))", "learning_rate=", "the optimizer"),
    ("fit(PastNetCallback(run, probe=[]))", "probe", "Pass a fixed batch"),
    ("Recorder(run, Torch())", "model=", "pastnet.torch.Recorder"),
    ("Recorder(run, legacy)", "tf_keras", "TF_USE_LEGACY_KERAS"),
    ("Recorder(run, tf.function(model))", "model=", "Pass the model itself"),
    ("Recorder(model, run)", "logdir=", "Recorder(logdir, model)"),
    ("Recorder(run, model.weights)", "model=", "{v.path: v for v in model.weights}"),
    ("Recorder(run, keras.Sequential([keras.layers.Dense(2)]))", "built", "on one batch"),
    ("Recorder(run, {'a': x})", "'a'", "Map names to variables"),
    ("Recorder(run, model, masks=masks.kept)", "masks=", "Make Masks of it"),
    ("Recorder(run, model, masks=Masks(other))", "masks=", "Make Masks of it"),
    ("Recorder(run, model, initial_step='now')", "initial_step=", "leave it out"),
    ("Masks(Torch())", "model=", "pastnet.torch.Masks"),
    ("Masks('model.keras')", "model=", "as in Masks(model)"),
    ("Masks(keras.Sequential([keras.layers.Dense(2)]))", "Could not use model", "on one batch"),
    ("Masks(model, optimizer='adam')", "optimizer", "Pass the one that trains it"),
    ("masks.prune('first/kernel')", "kept=", "channels="),
    ("masks.prune('first/kernel', channels=[-1])", "channels", "from 0"),
    ("masks.prune('first/kernel', [0, 1])", "kept mask", "channels="),
    ("masks.prune('first/kernel', 0.5 * ones)", "kept mask", "Compare first"),
    ("masks.prune('first/kernel', 0 * ones)", "'first/kernel'", "leave at least one weight"),
    ("masks.prune('kernel', channels=[0])", "'kernel'", "Write more of its path"),
    ("masks.freeze('firs')", "'firs'", "Use a variable's path"),
    ("masks.freeze(other.layers[0].kernel)", "'kernel'", "Choose among first/kernel"),
    ("masks.freeze('norm/moving_mean')", "statistic", "layer.trainable = False"),
    ("masks.prune_smallest(50)", "sparsity", "below 1"),
    ("masks.prune_smallest(0.5, scope='local')", "scope=", "'layer'"),
    ("masks.prune_blocks('first/kernel', 5, 4)", "nonzeros_per_block", "2:4"),
    ("masks.kept.__setitem__('first/kernel', ones)", "kept mask", "prune(name, kept=mask)"),
    ("masks.rewind(masks.snapshot(), 'lr')", "what=", "'learning_rate'"),
    ("masks.rewind(other)", "Snapshot", "masks.snapshot()"),
    ("PruningCallback(model, once)", "masks=", "pastnet.Masks(model)"),
    ("PruningCallback(masks, 0.5)", "schedule=", "OneShot"),
    ("fit(PruningCallback(Masks(other), once))", "masks=", "Make Masks of it"),
    ("PolynomialDecay(0, 0.5, 9, 9)", "begin_step", "OneShot"),
    ("PolynomialDecay(0, 80, 0, 9)", "PolynomialDecay: expected final=", "0.8 for 80 %"),
    ("PastNetwork(model, past=model)", "past=", "Leave past= out"),
    ("PastVariables(model)", "variables=", "Pass model.variables"),
    ("PastVariables(model.variables).sync('hard')", "tau", "Use 1"),
    ("clone_network(Torch())", "inputs=", "copy.deepcopy(model)"),
    ("clone_network(model.inputs)", "outputs", "at the end of the network"),
    ("clone_network(model, weights='random')", "weights", "'fresh'"),
    ("summary.channels('a', x, x, kept=[1, 0])", "kept mask", "one element per weight"),
    ("read(None)", "logdir=", "that training wrote to"),
    ("read(run / 'nowhere')", "nowhere", "that training wrote to"),
    ("read(file)", "directory", "that training wrote to"),
    ("read(log).runs['b']", "run 'b'", "one of a"),
    ("read(log).runs['a'].layers[0]", "layer", "Choose among first"),
    ("read(log).runs['a'].layers['frist']", "'frist'", "one of first"),
    ("read(log).runs['a'].overview(threshold='small')", "threshold=", "leave it out"),
    ("v1.Masks(variables=model, graph=graph)", "variables=", "Leave it out"),
    ("v1.Masks(graph=model)", "graph=", "Leave it out"),
    ("v1.Masks('nett', graph=graph)", "scope 'nett'", "whole parts of the path"),
    ("v1.Recorder(run, variables='net', masks=masks, graph=graph)", "masks=", "Make Masks of it"),
    ("v1.Masks('net', graph=graph).wrap(keras.optimizers.Adam())", "Optimizer", "pastnet.Masks"),
    ("v1.Masks('net', graph=graph).prune('w', channels=[0])", "session", "Pass session="),
    ("v1.Masks('net', graph=graph).hold(x)", "update=", "hold(lambda: update)"),
    ("v1.RecorderHook(run).begin()", "global step", "get_or_create_global_step"),
    ("v1.SyncHook('net', 2)", "sync_op", "pastnet.v1.sync_op"),
    ("numpy.Recorder(run, {'w': ones})", "'w'", "lambda"),
    ("numpy.Recorder(run, [ones])", "arrays=", "lambda"),
    ("numpy.Recorder(run, {'w': get}, trainable=['w'])", "trainable=", "{'w': …}"),
    ("numpy.Recorder(run, {'w': get}, trainable={'w': [1, 0]})", "'w'", "one 0 or 1 for each"),
]
OF_TORCH = [
    ("torch.Recorder(run, model)", "model=", "Write pastnet.Recorder(logdir, model)"),
    ("torch.Recorder(run, net.state_dict())", "model=", "Pass the module itself"),
    ("torch.Recorder(net, adam)", "logdir=", "Recorder(logdir, model)"),
    ("torch.Recorder(run, adam, net)", "model=", "the network first"),
    ("torch.Recorder(run, net, adam, 5)", "got 4", "Recorder(logdir, model, optimizer)"),
    ("torch.Recorder(run, net, masks={'0.weight': False})", "masks=", "Write trainable="),
    ("torch.Recorder(run, net, frozen=['0'])", "frozen=", "Write trainable="),
    ("torch.Recorder(run, net, trainable={'nope': False})", "'nope'", "'nope'"),
    ("torch.Recorder(run, net, trainable=['0.weight'])", "trainable=", "{'0/weight': …}"),
    ("torch.Recorder(run, net, trainable={'0.weight': 0})", "trainable", "Pass False"),
    ("torch.Recorder(run, net, kept={'0.weight': ones})", "kept mask", "one 0 or 1 for each"),
    ("torch.Recorder(run, net, probe=x)", "probe=", "Keras models on TensorFlow"),
    ("torch.Recorder(run, net, follows={'0.weight': '0.weight'})", "follows=", "copy"),
    ("torch.Recorder(run, net, hparams={'lr': 1})", "hparams=", "Write config="),
    ("torch.Recorder(run, net, config=[1])", "config=", "vars(args)"),
    ("torch.Recorder(run, net, config={'net': net})", "config=", "numbers or texts"),
    ("torch.watch(adam, run)", "model=", "pastnet.watch(model, logdir, optimizer)"),
    ("watch(model, run)", "model=", "callbacks=[pastnet.PastNetCallback(logdir)]"),
    ("watch({'w': ones}, run)", "model=", "torch.nn.Module"),
    ("watch(net, run, log_freq=9)", "log_freq=", "Write every="),
    ("Recorder(run, net)", "model=", "pastnet.torch.Recorder(logdir, model, optimizer)"),
    ("Masks(net)", "model=", "pastnet.torch.Masks(model, optimizer)"),
    ("PastNetwork(net)", "network=", "copy.deepcopy(model)"),
    ("jax.Recorder(run, net)", "params=", "pastnet.torch.Recorder"),
    ("numpy.Recorder(run, net)", "arrays=", "pastnet.torch.Recorder"),
    ("torch.Recorder(run, net, 'adam')", "optimizer=", "Pass the optimizer itself"),
    ("torch.Recorder(run, net, learning_rate=0.1)", "learning_rate=", "Write optimizer="),
    ("torch.Recorder(run, net, log_every_n_steps=5)", "log_every_n_steps=", "Write every="),
]
OF_JAX = [
    ("jax.Recorder(run, {'w': ones}, optimizer=model)", "optimizer=", "Write opt_state="),
    ("jax.Recorder(run, {'w': ones}, masks={'w': False})", "masks=", "Write trainable="),
    ("jax.Recorder(run, {'w': ones}, trainable={'b': False})", "trainable=", "True or False"),
    ("jax.Recorder(run, {'w': ones}, model)", "got 3", "Recorder(logdir, params)"),
    ("jax.Recorder(run, model)", "params=", "pastnet.Recorder(logdir, model)"),
    ("jax.Recorder(run, params={'w': ones}, lr=1)", "lr=", "Write learning_rate="),
    ("jax.Recorder({'w': ones}, run)", "logdir=", "logdir='runs/a'"),
    ("Recorder(run, {'w': array})", "model=", "pastnet.jax.Recorder(logdir, params)"),
    ("Masks({'w': array})", "model=", "pastnet.jax.Recorder(logdir, params, trainable=tree)"),
    ("PastNetwork({'w': array})", "network=", "past = params"),
    ("watch({'w': array}, run)", "model=", "recorder.record(step, params)"),
    ("jax.Recorder(run, {'w': 3})", "pytree", "variables="),
]
LOGGED = [
    ("record(recorder, 1, 2, 1)", "Step 1", "restart(step)"),
    ("record(recorder, 1, 2, 3, 2, 1)", "Step 2", "restart(step)"),
    ("recorder.close() or record(recorder, 1, 2)", "closed", "make a new one"),
    ("recorder.record('one')", "'one'", "Training continues"),
]
COMMANDS = [
    ("chek {log}", "'chek'", "Did you mean check?"),
    ("check", "required", "LOGDIR"),
    ("check {log}/nowhere", "nowhere", "that training wrote to"),
    ("check {file}", "directory", "that training wrote to"),
    ("report --logdir {log}", "--logdir", "LOGDIR goes without a name"),
    ("report {log} --run b", "'b'", "one of a"),
    ("report {log} --fail_on violations", "--fail_on", "Write --fail-on"),
    ("report {log} --fail-on violation", "'violation'", "violations"),
    ("report {log} --threshold small", "--threshold", "from 0 on"),
    ("export {log}", "required", "OUT"),
    ("export {log} {file}", "Could not export", "Choose another"),
    ("export {log} {log}/new --tables run", "--tables", "runs"),
    ("export {log} {log}/new --format json", "--format", "'csv'"),
]


class Module:
    """As that of PyTorch, whether that is installed or not."""

    __module__ = "torch.nn.modules.module"


class Torch(Module):
    """As one of PyTorch's."""

    __module__ = "torch.nn.modules.linear"


def build():
    shape = [keras.Input((3,)), keras.layers.Dense(4, name="first")]
    last = [keras.layers.BatchNormalization(name="norm"), keras.layers.Dense(2, name="second")]
    model = keras.Sequential([*shape, *last])
    model.compile("adam", "mse")
    return model


def record(recorder, *steps):
    for step in steps:
        recorder.record(step)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """What stands around the code of each row."""
    folder = tmp_path_factory.mktemp("mistakes")
    model, x = build(), np.ones((2, 3), "f")
    graph = tf.Graph()
    with graph.as_default():
        tf.compat.v1.get_variable("net/w", (3, 2))
    with pastnet.Recorder(folder / "log" / "a", model, every=1) as recorder:
        recorder.record(1)
    (folder / "file").write_text("text")

    def fit(callback):
        model.fit(x, np.ones((2, 2)), verbose=0, callbacks=[callback])

    return {
        **{name: getattr(pastnet, name) for name in dir(pastnet)},
        "keras": keras,
        "tf": tf,
        "Torch": Torch,
        "record": record,
        "fit": fit,
        "x": x,
        "model": model,
        "other": build(),
        "masks": pastnet.Masks(model),
        "graph": graph,
        "file": folder / "file",
        "log": folder / "log",
        "run": folder / "run",
        "once": pastnet.OneShot(0.5, 0),
        "ones": np.ones((3, 4), "f"),
        "get": lambda: np.ones(3, "f"),
        "legacy": type("Dense", (tf.Module,), {"__module__": "tf_keras.src.layers"})(),
    }


def answer(code, written, argument, mend):
    with pytest.raises(PastNetError) as error:
        eval(code, written)
    text = str(error.value)
    assert re.match(r"Could not [a-z]", text), text
    assert argument in text
    assert mend in text
    return error.value


def rows(table):
    return pytest.mark.parametrize(
        ("code", "argument", "mend"), table, ids=[row[0] for row in table]
    )


@rows(SPELT)
def test_an_argument_of_another_name(written, code, argument, mend):
    assert isinstance(answer(code, written, argument, mend), UnknownArgument)


@rows(VALUES)
def test_a_value_that_cannot_be_used(written, code, argument, mend):
    answer(code, written, argument, mend)


@rows(OF_TORCH)
def test_in_torch(written, code, argument, mend):
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    nn = torch.nn
    net = nn.Sequential(nn.Linear(3, 2))
    adam = torch.optim.Adam(net.parameters())
    answer(code, written | {"net": net, "adam": adam}, argument, mend)


@rows(OF_JAX)
def test_in_jax(written, code, argument, mend):
    jax = pytest.importorskip("jax", reason="jax isn't installed")
    answer(code, written | {"array": jax.numpy.ones(3)}, argument, mend)


@rows(LOGGED)
def test_while_training_it_is_logged_once(written, tmp_path, caplog, code, argument, mend):
    with pastnet.Recorder(tmp_path, written["model"], every=1) as recorder:
        eval(code, written | {"recorder": recorder})
    (text,) = [entry.getMessage() for entry in caplog.records]
    assert argument in text
    assert mend in text


@pytest.mark.parametrize(("typed", "argument", "mend"), COMMANDS, ids=[row[0] for row in COMMANDS])
def test_on_the_command_line(written, capsys, typed, argument, mend):
    error = io.StringIO()
    arguments = typed.format(**{name: written[name] for name in ("log", "file")}).split()
    try:
        code = main(arguments, sys.stdout, error)
    except SystemExit as end:  # from the parser
        code = end.code
    text = error.getvalue() + capsys.readouterr().err
    assert code == UNUSABLE
    assert argument in text
    assert mend in text


def test_an_empty_directory_has_no_run_and_says_where_to_look(tmp_path):
    assert "give the directory that training wrote to" in repr(pastnet.read(tmp_path))


@pytest.mark.parametrize(
    "room", [pastnet, pastnet.numpy, pastnet.v1], ids=lambda room: room.__name__
)
def test_all_that_is_called_answers_a_foreign_argument(room):
    settings_go_on = {"Masked", "MaskedDense", "load_model"}  # to Keras, which answers
    values = {"Snapshot", "ClonedGraph", "PastGraph"}  # what others return
    for name in {*room.__all__} - settings_go_on - values:
        if callable(called := getattr(room, name)):
            with pytest.raises(UnknownArgument, match="got zzz="):
                called(zzz=1)
