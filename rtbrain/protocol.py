"""How messages are published: frames that a listener can split with one line of code, and their JSON Schema.

A frame is the topic, a space and one JSON object, which begins with `schema`, `topic`, `seq` and `published_s` (the LSL
clock of the decoder's machine). `seq` counts each topic's messages from 0, so that a listener sees what it lost.
"""

import json
from pathlib import Path
from typing import Any, Final, cast

from rtbrain.config import parse, refuse_unknown
from rtbrain.errors import SinkError
from rtbrain.published import Message, Meta, StateMessage, StatusMessage, TokenMessage

VERSION: Final = 1
"""Changes when a listener that understood the messages before would not understand them any more."""

MAX_BYTES: Final = 1 << 20
"""No frame is longer; listeners may refuse longer ones."""

SCHEMA_FILE: Final = Path(__file__).parent / "messages_schema" / f"v{VERSION}.json"
"""The JSON Schema that is shipped; written by `python -m rtbrain.protocol`."""

TOPICS: Final[dict[str, type[Any]]] = {
    "meta": Meta,
    "token": TokenMessage,
    "state": StateMessage,
    "status": StatusMessage,
}
_TOPIC_OF: Final = {kind: topic for topic, kind in TOPICS.items()}
ENVELOPE: Final[dict[str, Any]] = {
    "schema": {"const": VERSION},
    "topic": {"type": "string"},
    "seq": {"type": "integer", "minimum": 0},
    "published_s": {"type": "number"},
}
"""What every message begins with, as JSON Schema."""


class Encoder:
    """Turns messages into frames and counts each topic's."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(TOPICS, 0)
        """Messages so far, by topic."""

    def frame(self, message: Message, published_s: float) -> bytes:
        """Return the frame of a message that is published now."""
        topic = _TOPIC_OF[type(message)]
        head = {"schema": VERSION, "topic": topic, "seq": self.counts[topic], "published_s": published_s}
        try:
            text = json.dumps(head | _fields(message), separators=(",", ":"), allow_nan=False, default=_fields)
        except ValueError as error:
            raise SinkError(f"a {topic} message holds a number that is not finite: {message}") from error
        self.counts[topic] += 1
        return f"{topic} {text}".encode()


def _fields(part: Any) -> dict[str, Any]:
    """As dataclasses.asdict, but for the parts of it, which JSON asks for, and without copies: there are many."""
    return {name: getattr(part, name) for name in part.__slots__}


def decode(frame: bytes) -> tuple[str, dict[str, Any]]:
    """Return a frame's topic and values.

    Raises
    ------
    SinkError
        It is no frame of this version.
    """
    topic, _, text = frame[: MAX_BYTES + 1].partition(b" ")
    if len(frame) > MAX_BYTES:
        raise SinkError(f"a message of {len(frame)} bytes is longer than {MAX_BYTES}; it is not from rtbrain")
    try:
        values = json.loads(text)
        fits = values["topic"] == topic.decode() and values["schema"] == VERSION
    except (ValueError, KeyError, TypeError) as error:
        raise SinkError(f"this is no message of rtbrain: {frame[:60]!r}") from error
    if not fits:
        raise SinkError(f"a message of version {values['schema']!r} was received, this is version {VERSION}: update")
    return topic.decode(), values


def message_of(values: dict[str, Any]) -> Message:
    """Return the values of a decoded frame as a message; everything wrong with them is listed in a ConfigError."""
    body = {key: value for key, value in values.items() if key not in ENVELOPE}
    return cast("Message", parse(TOPICS[values["topic"]], body, f"the {values['topic']} message"))


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of all messages: one definition per topic, and that a message is one of them."""
    from pydantic import TypeAdapter

    definitions: dict[str, Any] = {}
    for topic, kind in TOPICS.items():
        schema = TypeAdapter(refuse_unknown(kind)).json_schema(mode="serialization")
        definitions |= schema.pop("$defs", {})
        schema["properties"] = ENVELOPE | {"topic": {"const": topic}} | schema["properties"]
        schema["required"] = [*ENVELOPE, *schema["required"]]
        definitions[topic] = schema
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Messages of rtbrain, version {VERSION}",
        "oneOf": [{"$ref": f"#/$defs/{topic}"} for topic in TOPICS],
        "$defs": definitions,
    }


def schema_text() -> str:
    """Return the schema as it is shipped."""
    return json.dumps(json_schema(), indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
