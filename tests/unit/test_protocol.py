"""Messages keep to the JSON Schema that is shipped, and frames can be read by anybody."""

import json
from dataclasses import replace
from typing import Any

import pytest

from rtbrain.errors import ConfigError, SinkError
from rtbrain.messages import UNLABELLED, Token
from rtbrain.protocol import MAX_BYTES, SCHEMA_FILE, TOPICS, Encoder, decode, message_of, schema_text
from rtbrain.published import TokenMessage
from tests.unit.sinks.examples import ALL, STATE, STATUS, TOKEN

SCHEMA = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}
KNOWN = {
    *("type", "properties", "required", "additionalProperties", "items", "anyOf", "oneOf", "enum", "const", "minimum"),
    *("$ref", "title", "description", "default", "$defs", "$schema"),
}


def errors(value: Any, schema: Any, at: str = "message") -> list[str]:
    """Return what a JSON Schema has against a value; of the keywords, those that ours uses."""
    assert set(schema) <= KNOWN, f"the test does not know {set(schema) - KNOWN}"
    if "$ref" in schema:
        return errors(value, SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], at)
    found = []
    for key in ("anyOf", "oneOf"):
        fitting = sum(not errors(value, each, at) for each in schema.get(key, []))
        if key in schema and (fitting == 0 or (key == "oneOf" and fitting > 1)):
            found.append(f"{at}: {fitting} alternatives fit")
    kind = TYPES[schema["type"]] if "type" in schema else object
    if not isinstance(value, kind) or (isinstance(value, bool) and schema.get("type") in ("integer", "number")):
        return [*found, f"{at}: {value!r} is no {schema['type']}"]
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        found.append(f"{at}: {value!r} is not allowed")
    if isinstance(value, int | float) and value < schema.get("minimum", value):
        found.append(f"{at}: {value!r} is too small")
    if isinstance(value, list):
        found += [error for i, each in enumerate(value) for error in errors(each, schema.get("items", {}), f"{at}.{i}")]
    if isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        found += [f"{at}: {key} is missing" for key in schema.get("required", []) if key not in value]
        for key, each in value.items():
            if key in properties or isinstance(others, dict):
                found += errors(each, properties.get(key, others), f"{at}.{key}")
            elif not others:
                found.append(f"{at}: {key} is unknown")
    return found


def test_the_shipped_schema_is_that_of_the_code():
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text(), "run `python -m rtbrain.protocol`"


@pytest.mark.parametrize("message", ALL, ids=list(TOPICS))
def test_messages_fit_the_schema_and_come_back(message):
    frame = Encoder().frame(message, 77.5)
    topic, space, text = frame.partition(b" ")
    values = json.loads(text)
    assert space
    assert errors(values, SCHEMA) == []
    assert (values["topic"], values["seq"], values["schema"], values["published_s"]) == (topic.decode(), 0, 1, 77.5)
    assert decode(frame) == (topic.decode(), values)
    assert message_of(values) == message


@pytest.mark.parametrize(
    "change",
    [
        {"trusted": "yes"},
        {"label": None},
        {"extra": 1},
        {"probabilities": {"rest": "high"}},
        {"schema": 2},
        {"seq": -1},
        {"markers": [{"text": "no time"}]},
    ],
)
def test_the_schema_refuses_what_is_wrong(change):
    _, values = decode(Encoder().frame(STATE, 1.0))
    assert errors(values | change, SCHEMA)
    assert errors({key: value for key, value in values.items() if key != "age"}, SCHEMA)


def test_each_topic_is_counted_by_itself():
    encoder = Encoder()
    frames = [encoder.frame(each, 0.0) for each in (STATE, STATE, STATUS, STATE, TOKEN)]
    assert [decode(frame)[1]["seq"] for frame in frames] == [0, 1, 0, 2, 0]


def test_what_is_not_finite_is_refused_and_not_counted():
    encoder = Encoder()
    with pytest.raises(SinkError, match="not finite"):
        encoder.frame(replace(STATE, signal_s=float("nan")), 0.0)
    assert encoder.counts["state"] == 0


def test_tokens_without_a_template_or_power():
    token = TokenMessage.of(Token(UNLABELLED, 0, 5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0), "broad", 250.0, 0)
    assert (token.state, token.gev) == (None, None)
    assert TOKEN.gev == pytest.approx(0.64)


@pytest.mark.parametrize(
    "frame",
    [b"", b"state", b"state {}", b"state [1]", b"state {", b'status {"topic":"state","schema":1}', b"\xff\xfe {}"],
)
def test_what_is_no_message_is_refused(frame):
    with pytest.raises(SinkError):
        decode(frame)


def test_another_version_and_too_long_a_message_are_refused():
    with pytest.raises(SinkError, match="version 9"):
        decode(b'state {"topic":"state","schema":9}')
    with pytest.raises(SinkError, match="longer than"):
        decode(b"state " + b" " * MAX_BYTES)


def test_values_that_do_not_fit_are_all_named():
    _, values = decode(Encoder().frame(STATE, 1.0))
    with pytest.raises(ConfigError, match=r"(?s)signal_s.*later"):
        message_of(values | {"signal_s": "soon", "later": 1})
