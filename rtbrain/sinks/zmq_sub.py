"""The other end: messages received over ZeroMQ, and a count of those that were lost."""

from types import TracebackType
from typing import Any

import zmq

from rtbrain.errors import SinkError
from rtbrain.protocol import MAX_BYTES, TOPICS, decode
from rtbrain.security import ClientKeys, check_address
from rtbrain.sinks.zmq_pub import HIGH_WATER_MARK


class Subscriber:
    """A SUB socket for some topics.

    Parameters
    ----------
    endpoint : str
        Where the decoder publishes.
    topics : sequence of str
        Which topics to receive; all if left out.
    keys : ClientKeys, optional
        For a decoder that asks for them.

    Attributes
    ----------
    missed : int
        Messages that were published, but did not arrive, as far as `seq` shows.
    """

    def __init__(self, endpoint: str, topics: tuple[str, ...] = tuple(TOPICS), keys: ClientKeys | None = None) -> None:
        check_address(endpoint)
        self.missed = 0
        self._next: dict[str, int] = {}
        self._context: Any = zmq.Context()
        self._socket: Any = self._context.socket(zmq.SUB)
        self._socket.setsockopt(zmq.RCVHWM, HIGH_WATER_MARK)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_BYTES)
        if endpoint.startswith("tcp://["):
            self._socket.setsockopt(zmq.IPV6, 1)
        if keys is not None:
            self._socket.curve_serverkey = keys.server
            self._socket.curve_publickey, self._socket.curve_secretkey = keys.public, keys.secret
        for topic in topics:
            self._socket.setsockopt(zmq.SUBSCRIBE, f"{topic} ".encode())  # the space ends the topic
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as error:
            self.close()
            raise SinkError(f"{endpoint!r} is no endpoint ({error}); write for example tcp://127.0.0.1:5556") from error

    def receive(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the next message's values, None if none came in time."""
        if not self._socket.poll(round(1000 * timeout_s)):
            return None
        topic, values = decode(self._socket.recv())
        seq = int(values["seq"])
        # A smaller number than expected is a decoder that was started again.
        self.missed += max(0, seq - self._next.get(topic, seq))
        self._next[topic] = seq + 1
        return values

    def close(self) -> None:
        """Disconnect."""
        self._socket.close()
        self._context.term()

    def __enter__(self) -> "Subscriber":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
