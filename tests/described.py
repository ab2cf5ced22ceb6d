"""The routes as `openapi.json` describes them, and whether an answer is what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tb_pastnet.serve import plugin
from tests.containers import unpack

DOCUMENT = json.loads(Path(plugin.__file__).with_name("openapi.json").read_text("utf-8"))
KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
LIMITS = {
    "minimum": lambda value, limit: value >= limit,
    "maximum": lambda value, limit: value <= limit,
    "multipleOf": lambda value, limit: value % limit == 0,
    "minItems": lambda value, limit: len(value) >= limit,
    "maxItems": lambda value, limit: len(value) <= limit,
    "pattern": lambda value, limit: re.search(limit, value) is not None,
    "const": lambda value, limit: value == limit,
    "enum": lambda value, limit: value in limit,
}
KNOWN = {"type", "required", "properties", "items", "additionalProperties", "default", *LIMITS}


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    """What a reference stands for."""
    while "$ref" in part:
        found: Any = DOCUMENT
        for key in part["$ref"].removeprefix("#/").split("/"):
            found = found[key]
        part = found
    return part


def operation(route: str) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"][route]["get"]
    return found


def parameters(route: str) -> dict[str, dict[str, Any]]:
    """Those of the query, by name."""
    found = [resolved(one) for one in operation(route)["parameters"]]
    return {one["name"]: one for one in found if one["in"] == "query"}


def faults(value: Any, schema: dict[str, Any], at: str = "") -> list[str]:
    """Where a value isn't what a schema says, or tells what it doesn't mention."""
    schema = resolved(schema)
    assert set(schema) <= KNOWN, f"{at}: this test doesn't know {set(schema) - KNOWN}"
    names = schema.get("type", [])
    kinds = [
        kind for name in ([names] if isinstance(names, str) else names) for kind in KINDS[name]
    ]
    if kinds and type(value) not in kinds:
        return [f"{at}: expected {names}, got {value!r}"]
    found = [
        f"{at}: expected {key} {schema[key]}, got {value!r}"
        for key, holds in LIMITS.items()
        if key in schema and value is not None and not holds(value, schema[key])
    ]
    if isinstance(value, dict):
        told = schema["properties"]
        found += [f"{at}/{key}: missing" for key in schema["required"] if key not in value]
        found += [f"{at}/{key}: not described" for key in value if key not in told]
        for key in told.keys() & value.keys():
            found += faults(value[key], told[key], f"{at}/{key}")
    if isinstance(value, list):
        for number, item in enumerate(value):
            found += faults(item, schema["items"], f"{at}/{number}")
    return found


def container_faults(body: bytes, content: dict[str, Any]) -> list[str]:
    """Where a container isn't what is said of it: its header, and dtype and shape of its arrays."""
    header, arrays = unpack(body)
    found = faults(header, content["x-header"])
    told = {
        name: one
        for name, one in content["x-sections"].items()
        if name in arrays or not one.get("optional")
    }
    if list(arrays) != list(told):
        return [*found, f"expected the sections {list(told)}, got {list(arrays)}"]
    lengths: dict[str, int] = {}
    for name, array in arrays.items():
        if array.dtype.str[1:] not in told[name]["dtype"]:
            found.append(f"{name}: expected {told[name]['dtype']}, got {array.dtype}")
        shape = told[name]["shape"]
        wanted = [
            lengths.setdefault(one, size) if isinstance(one, str) else one
            for one, size in zip(shape, array.shape, strict=False)
        ]
        if (len(shape), wanted) != (array.ndim, list(array.shape)):
            found.append(f"{name}: expected {shape} of {lengths}, got {array.shape}")
    return found


def answer_faults(route: str, status: int, headers: Any, body: bytes) -> list[str]:
    """Where an answer isn't what the document says of its route."""
    told = operation(route)["responses"].get(str(status))
    if told is None:
        return [f"{route}: the status {status} isn't described"]
    told = resolved(told)
    found = []
    for name, header in told.get("headers", {}).items():
        found += faults(headers.get(name), resolved(header)["schema"], name)
    if "content" not in told:
        return [*found, *(["expected no body"] if body else [])]
    ((kind, content),) = told["content"].items()
    if headers["Content-Type"].partition(";")[0] != kind:
        return [*found, f"expected {kind}, got {headers['Content-Type']}"]
    if "x-header" in content:
        return found + container_faults(body, content)
    if kind == "application/json":
        return found + faults(json.loads(body), content["schema"])
    return found
