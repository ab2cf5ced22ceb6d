"""What a room doesn't do, and why: docs/reference/what_works_where.md is made of it."""

from __future__ import annotations

EXCEPTIONS: dict[str, dict[str, str]] = {
    "a_weight_has_the_rate_of_its_group": {
        "NumPy": "its Recorder is given one learning rate",
        "a source of one's own": "it is given one learning rate",
        "JAX": "its Recorder is given one learning rate",
        "Keras callback": "`fit` trains with one optimizer",
        "TF1 graphs": "its Recorder is given one learning rate",
    },
}
"""By behaviour and room the reason."""
