"""The versions that the matrix tries: each supported one in at least one column.

Not their product: the oldest of everything together, the newest together, the newest TensorFlow
with the oldest of the rest, and a column for each TensorFlow between. TensorFlow before 2.21 holds
TensorBoard to its own version.
"""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    """What one environment holds; an empty text is the newest version that pip finds.

    Attributes:
        name: What the command line calls it.
        python: Version of Python, as "3.10".
        tensorflow: Of TensorFlow, of its smaller package for processors, too.
        keras: Of Keras.
        tensorboard: Of TensorBoard.
        numpy: Of NumPy.
        werkzeug: Of werkzeug.
        more: Other pins, as pip writes them.
    """

    name: str
    python: str
    tensorflow: str = ""
    keras: str = ""
    tensorboard: str = ""
    numpy: str = ""
    werkzeug: str = ""
    more: tuple[str, ...] = ()

    @property
    def has_tensorflow(self) -> bool:
        """Whether TensorFlow has wheels for its Python."""
        return self.python != "3.14"

    def pins(self) -> list[str]:
        """The constraints that pip gets."""
        pinned = {
            "tensorflow": self.tensorflow,
            "tensorflow-cpu": self.tensorflow,
            "keras": self.keras,
            "tensorboard": self.tensorboard,
            "numpy": self.numpy,
            "werkzeug": self.werkzeug,
        }
        return [*(f"{name}=={version}" for name, version in pinned.items() if version), *self.more]


_PKG_RESOURCES = ("setuptools<82",)  # TensorBoard before 2.21 imports it

# TensorFlow 2.20 takes any, but writes graphs as text in a way that 6 warns of and 7 refuses.
_PROTOBUF = (*_PKG_RESOURCES, "protobuf<6")

_OLDEST = (
    "google-crc32c==1.5.0",
    "h5py==3.10.0",
    "scikit-learn==1.3.0",
    "setuptools==65.5.0",
)

COLUMNS = (
    Column("oldest", "3.10", "2.16.1", "3.7.0", "2.16.2", "1.26.0", "2.1.0", _OLDEST),
    Column("2.17", "3.12", "2.17.1", "", "2.17.1", "1.26.4", "3.0.6", _PKG_RESOURCES),
    Column("2.18", "3.12", "2.18.1", "3.8.0", "2.18.0", "2.0.2", "", _PKG_RESOURCES),
    Column("2.19", "3.11", "2.19.1", "3.9.2", "2.19.0", "1.26.4", "2.3.8", _PKG_RESOURCES),
    Column("2.20", "3.13", "2.20.0", "3.10.0", "2.20.0", "2.1.3", "3.0.6", _PROTOBUF),
    Column("crossed", "3.10", "2.21.0", "", "2.16.2", "1.26.4", "", _PKG_RESOURCES),
    Column("3.14", "3.14"),
    Column("newest", "3.13"),
)

WITHOUT_TENSORFLOW = (
    "tests/contract/test_absent_parts.py",
    "tests/contract/test_testing.py",
    "tests/unit/core",
    "tests/unit/format",
    "tests/unit/jax",
    "tests/unit/numpy",
    "tests/unit/reader",
    "tests/unit/torch",
)
"""Tests of the viewer, PyTorch, JAX and NumPy, where TensorFlow isn't there."""

QUICK = (
    "tests/golden",
    "tests/fuzz",
    "tests/contract/test_absent_parts.py",
    "tests/contract/test_http.py",
    "tests/contract/test_loaders.py",
    "tests/contract/test_masks_recorded.py",
    "tests/contract/test_numbers.py",
    "tests/contract/test_own_writer.py",
    "tests/contract/test_recorder.py",
    "tests/unit/core",
    "tests/unit/serve",
    "tests/unit/keras/audit/test_audit.py",
    "tests/unit/keras/clones/test_clone_functions.py",
    "tests/unit/keras/layers/test_masked_training.py",
    "tests/unit/keras/masks/test_masks_exact.py",
    "tests/unit/keras/masks/test_masks_saved.py",
    "tests/unit/keras/model",
    "tests/unit/keras/past/test_past_network.py",
    "tests/unit/keras/test_callback.py",
    "tests/unit/keras/test_recorder.py",
    "tests/unit/keras/test_summary.py",
    "tests/unit/v1/clones/test_clone_programs.py",
    "tests/unit/v1/masks/test_masks.py",
    "tests/unit/v1/past/test_sync_hook.py",
    "tests/unit/v1/test_recorder.py",
)
"""Tests of all that other packages have a say in: some minutes a column."""
