"""Answers by schema as Python objects: dataclasses, and pydantic models if the caller has pydantic."""

from __future__ import annotations

import dataclasses
import enum
import types
from collections.abc import Collection, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from swarm_mcp.agents.harness.servers import schema_of
from swarm_mcp.errors import Refused

T = TypeVar("T")
_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false", type(None): "null"}


def structured(kind: type[T], value: object) -> T:
    """Return the JSON `value` as a `kind`. Raises Refused, naming the field, where it does not fit."""
    _require_model(kind)
    if dataclasses.is_dataclass(kind):
        made: T = _read(kind, value, kind.__name__)
        return made
    try:
        validated: T = kind.model_validate(value)  # type: ignore[attr-defined]
    except ValueError as error:  # pydantic's ValidationError is one
        raise Refused(f"the answer is no {kind.__name__}: {error}") from error
    return validated


def schema_for(kind: type) -> dict[str, Any]:
    """Return the JSON schema of a dataclass or pydantic model. Every field is required, and no other is allowed."""
    _require_model(kind)
    if dataclasses.is_dataclass(kind):
        return schema_of(kind)
    found: dict[str, Any] = _strict(kind.model_json_schema())  # type: ignore[attr-defined]
    return found


def is_model(kind: object) -> bool:
    """Return True for a dataclass or a pydantic model, not for an instance of one."""
    return isinstance(kind, type) and (dataclasses.is_dataclass(kind) or hasattr(kind, "model_validate"))


def _require_model(kind: object) -> None:
    if not is_model(kind):
        raise Refused(f"structured wants a dataclass or a pydantic model, not {getattr(kind, '__name__', kind)}")


def _strict(schema: Any) -> Any:
    """Return a schema in the form that every harness takes: Codex refuses optional fields, and open objects."""
    if isinstance(schema, list):
        return [_strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: _strict(value) for name, value in schema.items()}
    if isinstance(made.get("properties"), dict) and made.get("type") == "object":
        made.setdefault("additionalProperties", False)
        made["required"] = list(made["properties"])
    return made


def _read(kind: Any, value: Any, place: str) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        if value in inner:
            return value
        raise _wrong(place, f"one of {', '.join(map(str, inner))}", value)
    if origin in (Union, types.UnionType):
        return _read_any(inner, value, place)
    base = origin or kind
    if base in (Any, object) or not isinstance(base, type):
        return value
    if dataclasses.is_dataclass(base):
        return _read_dataclass(base, value, place)
    if issubclass(base, enum.Enum):
        try:
            return base(value)
        except ValueError:
            raise _wrong(place, f"one of {', '.join(str(one.value) for one in base)}", value) from None
    if base in _NAMES:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if base is float and is_number:
            return float(value)
        if type(value) is base:
            return value
        raise _wrong(place, _NAMES[base], value)
    if issubclass(base, Mapping):
        if not isinstance(value, Mapping):
            raise _wrong(place, "an object", value)
        return {name: _read(inner[1] if inner else Any, one, f"{place}[{name!r}]") for name, one in value.items()}
    if issubclass(base, Collection):
        return _read_collection(base, inner, value, place)
    raise Refused(f"{place} has a type that no JSON can be read as: {base.__name__}")


def _read_any(kinds: tuple[Any, ...], value: Any, place: str) -> Any:
    refused = []
    # An exact type comes first: True is no whole number, and 1 no 1.0.
    for kind in sorted(kinds, key=lambda kind: kind is not type(value)):
        try:
            return _read(kind, value, place)
        except Refused as error:
            refused.append(error)
    raise refused[0]


def _read_dataclass(kind: type, value: Any, place: str) -> Any:
    if not isinstance(value, Mapping):
        raise _wrong(place, "an object", value)
    hints, given = get_type_hints(kind), {}
    for field in dataclasses.fields(kind):
        if not field.init:
            continue
        if field.name in value:
            given[field.name] = _read(hints[field.name], value[field.name], f"{place}.{field.name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise Refused(f"the answer lacks {place}.{field.name}")
    return kind(**given)


def _read_collection(base: type, inner: tuple[Any, ...], value: Any, place: str) -> Any:
    if not isinstance(value, list):
        raise _wrong(place, "a list", value)
    if base is tuple and inner and inner[-1] is not Ellipsis:
        if len(inner) != len(value):
            raise _wrong(place, f"a list of {len(inner)}", value)
        return tuple(_read(kind, one, f"{place}[{at}]") for at, (kind, one) in enumerate(zip(inner, value)))
    made = [_read(inner[0] if inner else Any, one, f"{place}[{at}]") for at, one in enumerate(value)]
    if base in (tuple, set, frozenset):
        return base(made)
    return made


def _wrong(place: str, wanted: str, value: object) -> Refused:
    return Refused(f"{place} of the answer wants {wanted}, not {type(value).__name__}")
