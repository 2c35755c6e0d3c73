"""Messages of a decoder at any time and in any number, as a listener gets them."""

from dataclasses import replace
from typing import Any

from rtbrain.protocol import Encoder, decode
from rtbrain.published import Message
from tests.unit.sinks.examples import META, STATE, STATUS, TOKEN


class Telling:
    """A decoder's messages, numbered and stamped."""

    def __init__(self) -> None:
        self._encoder = Encoder()

    def _told(self, message: Message, published_s: float) -> dict[str, Any]:
        return decode(self._encoder.frame(message, published_s))[1]

    def meta(self, **changes: Any) -> dict[str, Any]:
        return self._told(replace(META, **changes), 0.0)

    def state(self, at_s: float, share: float = 0.7, **changes: Any) -> dict[str, Any]:
        shares = {"rest": share, "arithmetic": 1 - share}
        return self._told(replace(STATE, probabilities=shares, label=max(shares, key=shares.get), **changes), at_s)

    def token(self, at_s: float, **changes: Any) -> dict[str, Any]:
        return self._told(replace(TOKEN, **changes), at_s)

    def status(self, **changes: Any) -> dict[str, Any]:
        return self._told(replace(STATUS, **changes), 0.0)
