"""Keras and TensorFlow: their source, held masks, the audit, past networks, clones, callbacks."""

from tb_pastnet.keras.versions import check_versions

check_versions()
