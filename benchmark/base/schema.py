"""Plain mappings → frozen dataclasses, with every key and value checked and coerced to its field's type."""

import dataclasses
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from benchmark.errors import UserError
from benchmark.limits import Within, read_number, shown
from benchmark.names import unknown_name

T = TypeVar("T")
MOST_ITEMS = 10_000


def later(neutral: Any) -> Any:
    """A field added after results exist: left out of the identity at its neutral value, so that old ids stand."""
    return dataclasses.field(default=neutral, metadata={"neutral": neutral})


def unidentified(default: Any) -> Any:
    """A field that says where something lies, not what is computed: no part of the identity."""
    return dataclasses.field(default=default, metadata={"identified": False})


def build(cls: type[T], values: Mapping[str, Any], where: str) -> T:
    """An instance of dataclass `cls`; unknown keys, wrong types and missing values are refused, naming `where`."""
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
    """`value` as the type `hint`. Numbers may come as text (from the command line); nothing else is guessed."""
    origin = get_origin(hint)
    if origin is Annotated:
        kind, *said = get_args(hint)
        return coerce(value, kind, where, next((each for each in said if isinstance(each, Within)), None))
    is_config = isinstance(hint, type) and dataclasses.is_dataclass(hint)
    if is_config or origin is dict:
        if not isinstance(value, Mapping):
            raise wrong_type(value, "a table", where)
        return build(hint, value, where) if is_config else dict(value)
    if origin is Literal:
        return coerce_choice(value, get_args(hint), where)
    if origin in (Union, types.UnionType):
        inner = next(arg for arg in get_args(hint) if arg is not type(None))
        return None if value is None else coerce(value, inner, where)
    if origin is tuple:
        items = words_of(value) if isinstance(value, str) else value
        if not isinstance(items, (list, tuple)):
            raise wrong_type(value, "a list", where)
        if len(items) > MOST_ITEMS:
            raise UserError(f"{where}: expected at most {MOST_ITEMS:,} values, got {len(items):,}")
        return tuple(coerce(item, get_args(hint)[0], where) for item in items)
    return coerce_scalar(value, hint, where, limit)


def words_of(text: str) -> list[str]:
    """A list as the command line has it: `8, 16` or `[8, 16]`."""
    return [part.strip() for part in text.strip("[] ").split(",") if part.strip()]


def coerce_choice(value: Any, choices: tuple[Any, ...], where: str) -> Any:
    if value not in choices:
        text = value if isinstance(value, str) else shown(value)
        raise unknown_name(text, [str(choice) for choice in choices], f"value of {where}:")
    return value


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
    """For `__post_init__` of configs: the message becomes a UserError that names the place."""
    if not condition:
        raise ValueError(message)


def identity(config: Any) -> Any:
    """Plain data that says what a config computes; fields at their neutral value are left out."""
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        return {
            f.name: identity(getattr(config, f.name))
            for f in dataclasses.fields(config)
            if f.metadata.get("identified", True)
            and f.metadata.get("neutral", dataclasses.MISSING) != getattr(config, f.name)
        }
    if isinstance(config, (list, tuple)):
        return [identity(item) for item in config]
    return config
