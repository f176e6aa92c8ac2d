"""Turn plain mappings into frozen dataclasses; check every key, and convert every value to its field's type."""

import dataclasses
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from benchmark.base.errors import UserError
from benchmark.base.limits import Within, read_number, shown
from benchmark.base.names import unknown_name

T = TypeVar("T")
MOST_ITEMS = 10_000


def later(neutral: Any) -> Any:
    """Declare a field added after results exist. At its neutral value it is not in the identity, so old ids stay."""
    return dataclasses.field(default=neutral, metadata={"neutral": neutral})


def unidentified(default: Any) -> Any:
    """Declare a field that says where something lies, not what is computed. It is never in the identity."""
    return dataclasses.field(default=default, metadata={"identified": False})


def build(cls: type[T], values: Mapping[str, Any], where: str) -> T:
    """Return an instance of dataclass `cls`. Refuse unknown keys, wrong types and missing values, naming `where`."""
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    hints = get_type_hints(cls, include_extras=True)
    for key in values:
        if key not in fields:
            raise unknown_name(key, fields, f"key in {where}:")
    built = {key: coerce(value, hints[key], f"{where}: {key}") for key, value in values.items()}
    required = dataclasses.MISSING
    for name, field in fields.items():
        if name not in built and field.default is required and field.default_factory is required:
            raise UserError(f"{where}: '{name}' is missing")
    try:
        return cls(**built)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None


def coerce(value: Any, hint: Any, where: str, limit: Within | None = None) -> Any:
    """Return `value` as the type `hint`. Numbers may be text (from the command line); nothing else is guessed."""
    origin = get_origin(hint)
    if origin is Annotated:
        kind, *notes = get_args(hint)
        return coerce(value, kind, where, next((note for note in notes if isinstance(note, Within)), None))
    is_config = isinstance(hint, type) and dataclasses.is_dataclass(hint)
    if is_config or origin is dict:
        if is_config and isinstance(value, hint):
            return value
        if not isinstance(value, Mapping):
            raise wrong_type(value, "a table", where)
        return build(hint, value, where) if is_config else dict(value)
    if origin is Literal:
        if value not in get_args(hint):
            text = value if isinstance(value, str) else shown(value)
            raise unknown_name(text, map(str, get_args(hint)), f"value of {where}:")
        return value
    if origin in (Union, types.UnionType):
        inner = next(arg for arg in get_args(hint) if arg is not type(None))
        return None if value is None else coerce(value, inner, where)
    if origin is tuple:
        items = split_list(value) if isinstance(value, str) else value
        if not isinstance(items, (list, tuple)):
            raise wrong_type(value, "a list", where)
        if len(items) > MOST_ITEMS:
            raise UserError(f"{where}: expected at most {MOST_ITEMS:,} values, got {len(items):,}")
        return tuple(coerce(item, get_args(hint)[0], where) for item in items)
    return coerce_scalar(value, hint, where, limit)


def split_list(text: str) -> list[str]:
    """Return the items of a list written as `8, 16` or `[8, 16]`, as on the command line."""
    return [part.strip() for part in text.strip("[] ").split(",") if part.strip()]


def coerce_scalar(value: Any, hint: type, where: str, limit: Within | None = None) -> Any:
    if hint in (int, float):
        try:
            return read_number(value, hint, limit)
        except ValueError as error:
            raise UserError(f"{where}: {error}") from None
    if hint is bool and isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if hint is str and isinstance(value, str):
        return value.strip()
    if hint is bool and isinstance(value, bool):
        return value
    raise wrong_type(value, {bool: "true or false", str: "text"}[hint], where)


def wrong_type(value: Any, expected: str, where: str) -> UserError:
    return UserError(f"{where}: expected {expected}, got {shown(value)}")


def check(condition: bool, message: str) -> None:
    """Raise a ValueError unless a condition holds. In `__post_init__` of a config, `build` makes it a UserError."""
    if not condition:
        raise ValueError(message)


def identity(config: Any) -> Any:
    """Return plain data that says what a config computes, without the fields at their neutral value."""
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        plain = {}
        for field in dataclasses.fields(config):
            value = getattr(config, field.name)
            is_neutral = field.metadata.get("neutral", dataclasses.MISSING) == value
            if field.metadata.get("identified", True) and not is_neutral:
                plain[field.name] = identity(value)
        return plain
    if isinstance(config, (list, tuple)):
        return [identity(item) for item in config]
    return config
