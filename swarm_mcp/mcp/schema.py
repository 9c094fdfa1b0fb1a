"""A validator for the part of JSON Schema (draft 2020-12) that tools use; its words are those of ``jsonschema``.

Importing ``jsonschema`` takes longer than everything else a tool's first call does.

Keywords: type, enum, const, minimum, exclusiveMinimum, maximum, maxLength, minItems, maxItems, items, properties,
required, additionalProperties, anyOf. Others, such as description and default, do not restrict a value.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Schema = dict[str, Any]
    Path = tuple[str | int, ...]


class Mismatch:
    """One difference between a value and a schema: `path` leads to the value, `keyword` is the broken rule."""

    def __init__(self, path: Path, keyword: str, message: str):
        self.path, self.keyword, self.message = path, keyword, message

    def place(self) -> str:
        """Return the path as text, such as ``files[1].name``; empty for the whole value."""
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return "".join(steps).lstrip(".")


def first_mismatch(value: object, schema: Schema) -> Mismatch | None:
    """Return the outermost difference, or `None` if the value fits the schema."""
    return min(mismatches(value, schema), key=lambda one: len(one.path), default=None)


def fits(value: object, schema: Schema) -> bool:
    """Return True if a value fits a schema."""
    return next(mismatches(value, schema), None) is None


def mismatches(value: object, schema: Schema, path: Path = ()) -> Iterator[Mismatch]:
    """Yield all differences, in the order of the schema's keywords."""
    for keyword, rule in schema.items():
        check = _CHECKS.get(keyword)
        if check is None:
            continue
        message = check(value, rule)
        if message:
            yield Mismatch(path, keyword, message)
    if isinstance(value, dict):
        yield from _in_object(value, schema, path)
    elif isinstance(value, list) and "items" in schema:
        for place, item in enumerate(value):
            yield from mismatches(item, schema["items"], (*path, place))


def _in_object(value: dict[str, Any], schema: Schema, path: Path) -> Iterator[Mismatch]:
    properties, more = schema.get("properties", {}), schema.get("additionalProperties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield Mismatch(path, "required", f"{name!r} is a required property")
    extra = [name for name in value if name not in properties]
    if more is False and extra:
        if len(extra) == 1:
            verb = "was"
        else:
            verb = "were"
        names = ", ".join(map(repr, sorted(extra)))
        message = f"Additional properties are not allowed ({names} {verb} unexpected)"
        yield Mismatch(path, "additionalProperties", message)
    elif isinstance(more, dict):
        for name in extra:
            yield from mismatches(value[name], more, (*path, name))
    for name, inner in properties.items():
        if name in value:
            yield from mismatches(value[name], inner, (*path, name))


_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str, "object": dict, "array": list, "boolean": bool, "null": type(None), "number": (int, float),
}  # fmt: skip


def _is_of(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, _TYPES[kind])


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _equal(one: object, other: object) -> bool:
    """Return True if two JSON values are equal. In Python alone 1 equals true."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _type(value: object, kinds: str | list[str]) -> str:
    if isinstance(kinds, str):
        kinds = [kinds]
    if any(_is_of(value, kind) for kind in kinds):
        return ""
    return f"{value!r} is not of type {', '.join(map(repr, kinds))}"


def _enum(value: object, allowed: list[object]) -> str:
    if any(_equal(value, one) for one in allowed):
        return ""
    return f"{value!r} is not one of {allowed!r}"


def _const(value: object, wanted: object) -> str:
    if _equal(value, wanted):
        return ""
    return f"{wanted!r} was expected"


def _minimum(value: Any, least: float) -> str:
    if _is_number(value) and value < least:
        return f"{value!r} is less than the minimum of {least!r}"
    return ""


def _exclusive_minimum(value: Any, bound: float) -> str:
    wrong = _is_number(value) and value <= bound
    if wrong:
        return f"{value!r} is less than or equal to the minimum of {bound!r}"
    return ""


def _maximum(value: Any, most: float) -> str:
    if _is_number(value) and value > most:
        return f"{value!r} is greater than the maximum of {most!r}"
    return ""


def _max_length(value: object, most: int) -> str:
    if isinstance(value, str) and len(value) > most:
        return f"{value!r} is too long"
    return ""


def _min_items(value: object, least: int) -> str:
    if not isinstance(value, list) or len(value) >= least:
        return ""
    if least == 1:
        return f"{value!r} should be non-empty"
    return f"{value!r} is too short"


def _max_items(value: object, most: int) -> str:
    if isinstance(value, list) and len(value) > most:
        return f"{value!r} is too long"
    return ""


def _any_of(value: object, schemas: list[Schema]) -> str:
    if any(fits(value, schema) for schema in schemas):
        return ""
    return f"{value!r} is not valid under any of the given schemas"


_CHECKS: dict[str, Callable[[Any, Any], str]] = {
    "type": _type, "enum": _enum, "const": _const, "minimum": _minimum, "exclusiveMinimum": _exclusive_minimum,
    "maximum": _maximum, "maxLength": _max_length, "minItems": _min_items, "maxItems": _max_items, "anyOf": _any_of,
}  # fmt: skip
