"""Settings from YAML or JSON into typed dataclasses: unknown keys refused, all errors listed with their path."""

import re
import typing
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union

from annotated_types import Ge, Gt, Le

from rtbrain.errors import ConfigError, perhaps

T = TypeVar("T")

Positive = Annotated[float, Gt(0)]
NotNegative = Annotated[float, Ge(0)]
Share = Annotated[float, Ge(0), Le(1)]
Count = Annotated[int, Ge(1)]

_WORDS = (
    ("a valid (tuple|list)", "a list"),
    (r"a (valid )?dictionary( or an instance of \w+)?", "settings by name"),
)
"""What pydantic calls things, and what they are called in YAML."""


def parse(cls: type[T], values: Any, where: str) -> T:
    """Return `values` as an instance of the dataclass `cls`, or raise one ConfigError with everything wrong in it."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(refuse_unknown(cls)).validate_python(values)
    except ConfigError as error:  # of a dataclass that looks at its values together
        raise ConfigError(f"{where}: {error}") from error
    except ValidationError as error:
        lines = []
        for item in error.errors():
            # Where a setting is missing, the input is the whole block that lacks it.
            got = "" if item["type"] == "missing" else f" (got {item.get('input')!r})"
            said = (
                _unknown(cls, item["loc"]) if item["type"] == "unexpected_keyword_argument" else _plainly(item["msg"])
            )
            lines.append(f"  {'.'.join(str(part) for part in item['loc']) or '(top)'}: {said}{got}")
        raise ConfigError(f"{where} has {len(lines)} error(s):\n" + "\n".join(lines)) from error


def _plainly(message: str) -> str:
    for pattern, words in _WORDS:
        message = re.sub(pattern, words, message)
    return message


def _unknown(cls: type[Any], place: tuple[int | str, ...]) -> str:
    """Say which settings there are instead of an unknown one."""
    *above, key = place
    kinds: list[Any] = [cls]
    for part in above:
        kinds = [inner for kind in kinds for inner in _inside(kind, str(part))]
    allowed = [each.name for kind in kinds if is_dataclass(kind) for each in fields(kind)]
    return f"no such setting{perhaps(str(key), allowed)}; there are {', '.join(allowed)}"


def _inside(kind: Any, part: str) -> list[Any]:
    """Return the types that a setting, or an item of a list or mapping, may have."""
    if is_dataclass(kind):
        inner = typing.get_type_hints(kind).get(part)
        return list(typing.get_args(inner)) if typing.get_origin(inner) in {Union, UnionType} else [inner]
    return list(typing.get_args(kind))


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
        values = _parsed(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}; give the path of a YAML file") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is no text in UTF-8 ({error.reason} at byte {error.start})") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is no valid YAML: {error}") from error
    if not isinstance(values, dict):
        got = "it is empty" if values is None else f"got {type(values).__name__}"
        raise ConfigError(f"{path} must hold settings by name, such as `name: value`; {got}")
    return values


def _parsed(text: str) -> Any:
    """Return what YAML holds; of two settings with one name it would take the last, and nobody would know."""
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            seen: dict[str, yaml.Node] = {}
            for key, _ in node.value:  # as they are written: what `<<` takes over may be set otherwise
                if isinstance(key, yaml.ScalarNode) and (first := seen.setdefault(key.value, key)) is not key:
                    lines = f"lines {first.start_mark.line + 1} and {key.start_mark.line + 1}"
                    raise yaml.YAMLError(f"{key.value!r} stands twice, in {lines}; remove one of them")
            return super().construct_mapping(node, deep)

    return yaml.load(text, Loader)


def _dataclasses_in(cls: type[Any]) -> list[type[Any]]:
    """Return a dataclass and all dataclasses that its fields mention."""
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
