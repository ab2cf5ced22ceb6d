"""Whether what the injector of failures names is there: renamed, it would let nothing fail."""

from __future__ import annotations

import re
from pathlib import Path

from tests.fault.injected import ENFORCED, GUARDS, OURS, SILENT

NAMED = {
    *(tuple(guard.split(":")) for guard in GUARDS),
    *((file, name) for file, names in SILENT.items() for name in names),
    (ENFORCED, "apply"),
}


def test_each_function_is_in_its_file():
    texts = {path.as_posix(): path.read_text("utf-8") for path in Path(OURS).rglob("*.py")}
    for file, name in NAMED:
        own = [text for path, text in texts.items() if path.endswith(f"/{file}")]
        assert any(re.search(rf"def {name}\(", text) for text in own), f"{file}:{name}"
