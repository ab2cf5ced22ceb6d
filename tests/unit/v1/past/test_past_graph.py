"""A network of a graph and its past, on the same input."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tb_pastnet.v1 import PAST_VARIABLES, past_network, sync_op
from tb_pastnet.v1.graph.layers import network_in
from tb_pastnet.v1.graph.session import GraphSession

pytestmark = pytest.mark.usefixtures("graph")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 4)).astype("f")
VALUES = {
    "net/kernel": RNG.normal(size=(4, 5)),
    "net/mean": RNG.normal(size=5),
    "net/head/kernel": RNG.normal(size=(5, 2)),
    "net/bias": RNG.normal(size=2),
}
LATER = {name: RNG.normal(size=value.shape).astype("f") for name, value in VALUES.items()}
NOW = {name: value.astype("f") for name, value in VALUES.items()}


def network(x, **settings):
    """A layer, a statistic, a layer."""
    made = {
        name: tf.get_variable(
            name,
            value.shape,
            trainable=name != "net/mean",
            **(settings if value.ndim == 2 else {}),
        )
        for name, value in NOW.items()
    }
    hidden = tf.tanh(tf.matmul(x, made["net/kernel"])) - made["net/mean"]
    return tf.matmul(hidden, made["net/head/kernel"]) + made["net/bias"]


def forward(values, x=X):
    """The same in NumPy."""
    hidden = np.tanh(x @ values["net/kernel"]) - values["net/mean"]
    return hidden @ values["net/head/kernel"] + values["net/bias"]


def close(found, values):
    np.testing.assert_allclose(found, forward(values), rtol=1e-5, atol=1e-6)


def write(session, values):
    """Gives the network values, each part of a partitioned variable its own."""
    for part in tf.global_variables("net/"):
        name, _, number = part.op.name.partition("/part_")
        value = values[name]
        part.load(np.array_split(value, 2)[int(number)] if number else value, session)


def begin(session, values=NOW):
    session.run(tf.global_variables_initializer())
    write(session, values)
    session.run(tf.local_variables_initializer())


@pytest.mark.parametrize(
    "partitioner", [None, tf.fixed_size_partitioner(2)], ids=["whole", "parts"]
)
def test_the_past_is_the_network_of_the_last_sync(kind, partitioner):
    x = tf.placeholder(tf.float32, (None, 4))
    output = network(x, partitioner=partitioner)
    past = past_network(x, output)
    delta = past.delta()
    with tf.Session() as session:
        begin(session)
        close(session.run(past.outputs, {x: X}), NOW)
        write(session, LATER)
        close(session.run(output, {x: X}), LATER)
        close(session.run(past.outputs, {x: X}), NOW)
        for name, moved in session.run(delta).items():
            np.testing.assert_array_equal(moved, LATER[name] - NOW[name])
        session.run(past.sync_op)
        close(session.run(past.outputs, {x: X}), LATER)
        assert not any(moved.any() for moved in session.run(delta).values())


def test_the_shadows_keep_to_themselves(kind):
    x = tf.placeholder(tf.float32, (None, 4))
    output = network(x)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.no_op())
    keys = (
        tf.GraphKeys.GLOBAL_VARIABLES,
        tf.GraphKeys.TRAINABLE_VARIABLES,
        tf.GraphKeys.UPDATE_OPS,
    )
    before = [list(tf.get_collection(key)) for key in keys]
    past = past_network(x, output)
    assert [tf.get_collection(key) for key in keys] == before
    assert past.mapping == {name: f"past/{name}" for name in VALUES}
    assert [one.op.name for one in past.variables] == list(past.mapping.values())
    assert not any(one.trainable for one in past.variables)
    for key in (PAST_VARIABLES, tf.GraphKeys.LOCAL_VARIABLES):
        assert [one.op.name for one in tf.get_collection(key)] == list(past.mapping.values())
    types = {one.op.type for one in (*past.variables, *tf.global_variables())}
    assert types == {"VariableV2" if kind == "reference" else "VarHandleOp"}
    assert repr(past) == "<PastGraph 'past' of 4 variables>"


def test_no_gradient_flows_into_the_past(kind):
    x = tf.placeholder(tf.float32, (None, 4))
    scale = tf.Variable(2.0, name="scale")  # no getter made it
    output = network(x) * scale
    past = past_network(x, output)
    everything = [x, *tf.global_variables(), *past.variables]
    assert tf.gradients(past.outputs, everything) == [None] * len(everything)
    loss = tf.reduce_sum((output - past.outputs) ** 2)
    pairs = tf.train.GradientDescentOptimizer(0.1).compute_gradients(loss)
    assert {one.op.name for _, one in pairs} == {*NOW, "scale"} - {"net/mean"}
    assert all(gradient is not None for gradient, _ in pairs)


def test_the_rest_of_a_part_is_current(kind):
    x = tf.placeholder(tf.float32, (None, 4))
    output = network(x)
    for number, (chosen, names) in enumerate(
        {
            "net/head": {"net/head/kernel"},
            "*/kernel": {"net/kernel", "net/head/kernel"},
            "mean": {"net/mean"},
            ("net/bias", tf.global_variables()[0]): {"net/bias", "net/kernel"},
        }.items()
    ):
        past = past_network(x, output, chosen, scope=f"past{number}")
        assert past.mapping.keys() == names
        with tf.Session() as session:
            begin(session)
            write(session, LATER)
            mixed = {name: (NOW if name in names else LATER)[name] for name in NOW}
            close(session.run(past.outputs, {x: X}), mixed)
        assert past.outputs.op.name.startswith(f"past{number}/")


def test_it_begins_at_any_tensor(kind):
    x = tf.placeholder(tf.float32, (None, 4))
    hidden = x + tf.get_variable("before", initializer=0.0)
    output = network(hidden)
    past = past_network(hidden, output)
    assert past.mapping.keys() == NOW.keys()
    with tf.Session() as session:
        begin(session)
        close(session.run(past.outputs, {x: X}), NOW)


def test_placeholders_are_shared(kind):
    x, rate = tf.placeholder(tf.float32, (None, 4)), tf.placeholder(tf.float32, ())
    past = past_network(x, rate * network(x))
    with tf.Session() as session:
        begin(session)
        np.testing.assert_allclose(
            session.run(past.outputs, {x: X, rate: 3.0}), 3 * forward(NOW), rtol=1e-5, atol=1e-5
        )


def test_outputs_come_back_in_their_structure(kind):
    x = tf.placeholder(tf.float32, (None, 4))
    output = network(x)
    sparse = tf.sparse.from_dense(output)
    bias = tf.global_variables()[-1].read_value()
    past = past_network({"x": x}, {"all": [output, sparse], "bias": bias, "x": x})
    with past.step():
        pass  # it waits for all of them
    with tf.Session() as session:
        begin(session)
        write(session, LATER)
        found = session.run(past.outputs, {x: X})
    close(found["all"][0], NOW)
    close(found["all"][1].values.reshape(6, 2), NOW)
    np.testing.assert_array_equal(found["bias"], NOW["net/bias"])
    np.testing.assert_array_equal(found["x"], X)


def test_a_sync_by_its_scopes(kind):
    x = tf.placeholder(tf.float32, (None, 4))
    past = past_network(x, network(x))
    sync = sync_op("net", "past/net")
    with tf.Session() as session:
        begin(session)
        write(session, LATER)
        session.run(sync)
        close(session.run(past.outputs, {x: X}), LATER)


def test_two_pasts_of_one_network(kind):
    x = tf.placeholder(tf.float32, (None, 4))
    output = network(x)
    old, older = past_network(x, output), past_network(x, output, scope="before/past")
    assert old.mapping["net/bias"] == "past/net/bias"
    assert older.mapping["net/bias"] == "before/past/net/bias"
    with tf.Session() as session:
        begin(session)
        write(session, LATER)
        session.run(old.sync_op)
        close(session.run(old.outputs, {x: X}), LATER)
        close(session.run(older.outputs, {x: X}), NOW)


def test_branches_loops_and_lookups(world):
    with tf.variable_scope("net"):
        table, step = tf.get_variable("table", (3,)), tf.get_variable("step", ())
    row, up = tf.placeholder(tf.int32, ()), tf.placeholder(tf.bool, ())
    chosen = tf.nn.embedding_lookup(table, row)
    signed = tf.cond(up, lambda: chosen * step, lambda: -step)
    output = tf.while_loop(lambda i, _: i < 3, lambda i, sum_: (i + 1, sum_ + step), (0, signed))[1]
    past = past_network([row, up], output)
    now = {row: 2, up: True}, {row: 2, up: False}
    with tf.Session() as session:
        begin(session, {"net/table": [1.0, 2.0, 3.0], "net/step": 1.0})
        assert [float(session.run(past.outputs, feed)) for feed in now] == [6.0, 2.0]
        write(session, {"net/table": [10.0, 20.0, 30.0], "net/step": 5.0})
        assert [float(session.run(output, feed)) for feed in now] == [165.0, 10.0]
        assert [float(session.run(past.outputs, feed)) for feed in now] == [6.0, 2.0]
        session.run(past.sync_op)
        assert [float(session.run(past.outputs, feed)) for feed in now] == [165.0, 10.0]


def test_a_table_that_is_shared():
    keys = tf.placeholder(tf.string, (None,))
    numbers = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1.0, 2.0])
    table = tf.lookup.StaticHashTable(numbers, 0.0)
    weight = tf.get_variable("weight", initializer=3.0)
    past = past_network(keys, weight * table.lookup(keys), share=table)
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        begin(session)
        weight.load(5.0, session)
        assert session.run(past.outputs, {keys: ["b", "a", "c"]}).tolist() == [6.0, 3.0, 0.0]


@pytest.mark.parametrize("seed", [None, 5])
def test_dropout_is_drawn_anew_unless_seeds_are_set(kind, seed):
    tf.set_random_seed(seed)
    x = tf.placeholder(tf.float32, (None, 4))
    scale = tf.get_variable("net/scale", initializer=2.0)
    output = scale * tf.nn.dropout(x, rate=0.5)
    past = past_network(x, output)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(tf.local_variables_initializer())
        for _ in range(3):
            both = session.run([output, past.outputs], {x: np.ones((50, 4))})
            assert [set(one.ravel()) for one in both] == [{0.0, 4.0}] * 2
            assert np.array_equal(*both) == (seed is not None)


def test_a_network_that_was_imported(kind, tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, (None, 4), name="x")
        tf.identity(network(x), name="output")
        session.run(tf.global_variables_initializer())
        write(session, NOW)
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    saver = tf.train.import_meta_graph(f"{path}.meta")
    x, output = map(tf.get_default_graph().get_tensor_by_name, ("x:0", "output:0"))
    past = past_network(x, output)
    with tf.Session() as session:
        saver.restore(session, path)
        session.run(past.initializer)
        write(session, LATER)
        close(session.run(output, {x: X}), LATER)
        close(session.run(past.outputs, {x: X}), NOW)


def test_a_network_that_calls_functions():
    x = tf.placeholder(tf.float32, ())
    weight = tf.get_variable("net/w", initializer=2.0, use_resource=True)

    @tf.function
    def scaled(x):
        return tf.cond(x > 0, lambda: x * weight, lambda: x)

    output = scaled(x)
    past = past_network(x, output)
    assert past.mapping == {"net/w": "past/net/w"}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(past.initializer)
        session.run(weight.assign(5.0))
        assert session.run([output, past.outputs], {x: 10.0}) == [50.0, 20.0]


def test_one_variable_needs_no_list():
    x = tf.placeholder(tf.float32, (None, 4))
    y = network(x)
    kernel = next(v for v in tf.global_variables() if v.op.name == "net/kernel")
    past_network(x, y, variables=kernel)
    assert [v.op.name for v in tf.get_collection(PAST_VARIABLES)] == ["past/net/kernel"]
    assert [each.name for each in network_in(GraphSession(), kernel).weights] == ["net/kernel"]
