from __future__ import annotations

from types import SimpleNamespace

import keras
import pytest
import tensorflow as tf

import tb_pastnet as pastnet
from tb_pastnet.errors import InvalidArgument, UnsupportedBackend
from tb_pastnet.keras.versions import check_model, check_versions, need_tensorflow

LEGACY = type("Dense", (tf.Module,), {"__module__": "tf_keras.src.layers.core"})(name="head")


@pytest.mark.parametrize(("name", "old"), [("keras", "2.15.0"), ("tensorflow", "2.9.3-rc1")])
def test_an_old_version_is_one_error(name, old):
    check_versions({name: SimpleNamespace(__version__="3.15.1")})
    check_versions({})
    with pytest.raises(UnsupportedBackend, match=rf"expected {name} .* or newer, got {old}\. Run"):
        check_versions({name: SimpleNamespace(__version__=old)})


@pytest.mark.parametrize(
    "use",
    [
        lambda path: pastnet.PastNetCallback(path).set_model(LEGACY),
        lambda path: pastnet.Recorder(path, LEGACY),
        lambda path: pastnet.Masks(LEGACY),
        lambda path: pastnet.Masked(LEGACY),
        lambda path: pastnet.PastNetwork(LEGACY),
        lambda path: pastnet.clone_network(LEGACY),
    ],
)
def test_a_model_of_tf_keras_is_refused(use, tmp_path):
    with pytest.raises(UnsupportedBackend, match="one of tf_keras. Unset TF_USE_LEGACY_KERAS, or"):
        use(tmp_path)


def test_a_callback_follows_models_of_keras_alone():
    check_model(keras.Sequential())
    module = type("Module", (), {"__module__": "torch.nn.modules.module"})()
    with pytest.raises(InvalidArgument, match=r"got a torch module. Write pastnet.torch.Recorder"):
        check_model(module)
    with pytest.raises(InvalidArgument, match=r"got int. Pass the model itself\."):
        check_model(3)


@pytest.mark.parametrize(
    "use",
    [
        lambda: pastnet.PastVariables([keras.Variable([1.0])]),
        lambda: pastnet.clone_network(keras.Input((2,)), keras.Input((2,))),
        lambda: need_tensorflow("do it"),
    ],
)
def test_what_needs_tensorflow_says_so(use, monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(UnsupportedBackend, match=r"expected the TensorFlow backend, got 'jax'\. S"):
        use()
