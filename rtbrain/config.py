"""Settings from YAML or JSON into typed dataclasses: unknown keys refused, all errors listed with their path."""

from pathlib import Path
from typing import Annotated, Any, TypeVar

from annotated_types import Ge, Gt, Le

from rtbrain.errors import ConfigError

T = TypeVar("T")

Positive = Annotated[float, Gt(0)]
NotNegative = Annotated[float, Ge(0)]
Share = Annotated[float, Ge(0), Le(1)]
Count = Annotated[int, Ge(1)]


def parse(cls: type[T], values: Any, where: str) -> T:
    """Return `values` as an instance of the dataclass `cls`, or raise one ConfigError with everything wrong in it."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(refuse_unknown(cls)).validate_python(values)
    except ValidationError as error:
        lines = []
        for item in error.errors():
            # Where a setting is missing, the input is the whole block that lacks it.
            got = "" if item["type"] == "missing" else f" (got {item.get('input')!r})"
            lines.append(f"  {'.'.join(str(part) for part in item['loc']) or '(top)'}: {item['msg']}{got}")
        raise ConfigError(f"{where} has {len(lines)} error(s):\n" + "\n".join(lines)) from error


def refuse_unknown(cls: type[T]) -> type[T]:
    """Make pydantic refuse unknown keys, and numbers that are not finite, in a dataclass and those that it holds."""
    from pydantic import ConfigDict, with_config

    strict = with_config(ConfigDict(extra="forbid", allow_inf_nan=False))
    for each in _dataclasses_in(cls):
        strict(each)
    return cls


def load_yaml(path: Path) -> dict[str, Any]:
    """Return a YAML file's top-level mapping."""
    import yaml

    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is no text in UTF-8 ({error.reason} at byte {error.start})") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is no valid YAML: {error}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path} must hold settings by name, got {type(values).__name__}")
    return values


def _dataclasses_in(cls: type[Any]) -> list[type[Any]]:
    """Return a dataclass and all dataclasses that its fields mention."""
    import typing
    from dataclasses import is_dataclass

    found: list[type[Any]] = []
    queue: list[Any] = [cls]
    while queue:
        item = queue.pop()
        if isinstance(item, type) and is_dataclass(item) and item not in found:
            found.append(item)
            queue.extend(typing.get_type_hints(item).values())
        else:
            queue.extend(typing.get_args(item))
    return found
