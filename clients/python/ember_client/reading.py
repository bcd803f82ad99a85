"""JSON to the dataclasses of results.

Members that no field has are passed over, so that a newer server does not break an older client.
"""

from __future__ import annotations

import dataclasses
from base64 import b64decode
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


def read(kind: type[T], value: Any) -> T:
    """An instance of a dataclass, from the JSON that describes it.

    Raises:
        TypeError, ValueError, AttributeError: it is not described by that.
    """
    known: Any = kind
    members = _members(known)
    return kind(**{name: _value(hint, value[key]) for name, key, hint in members if key in value})


@cache
def _members(kind: Any) -> tuple[tuple[str, str, Any], ...]:
    """Of each field: its name, its key in JSON, and its type."""
    hints = get_type_hints(kind)
    fields = dataclasses.fields(kind)
    return tuple(
        (each.name, each.metadata.get("name", each.name), hints[each.name]) for each in fields
    )


def _value(hint: Any, value: Any) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is UnionType:
        (hint,) = (each for each in arguments if each is not NoneType)
        return None if value is None else _value(hint, value)
    if origin is tuple:
        return tuple(_value(arguments[0], each) for each in value)
    if origin is Mapping:
        return {name: _value(arguments[1], each) for name, each in value.items()}
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return read(hint, value)
    if hint is datetime:
        return datetime.fromisoformat(value)
    return b64decode(value) if hint is bytes else value
