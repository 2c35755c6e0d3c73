"""Messages over ZeroMQ to any number of listeners, none of whom can slow the decoder down."""

from types import TracebackType
from typing import Any, Final, cast

import zmq
from zmq.auth.thread import ThreadAuthenticator

from rtbrain.errors import SinkError
from rtbrain.protocol import MAX_BYTES
from rtbrain.security import ServerKeys, check_endpoint

HIGH_WATER_MARK: Final = 20_000
"""Messages that wait for a slow listener before it loses some, which it sees by `seq`: many minutes."""

LINGER_MS: Final = 1000
"""At the end, for so long what was not sent yet is still being sent."""

MAX_INCOMING_BYTES: Final = 512
"""Of what listeners send: subscriptions, and the handshake with keys, whose longest part has about 300 bytes. ZeroMQ
keeps subscriptions byte by byte, so that long ones would fill the memory."""

_HANDSHAKE_MS: Final = 10_000


class ZmqPublisher:
    """A PUB socket: each message is one frame, its topic, a space and JSON.

    Parameters
    ----------
    endpoint : str
        Such as `tcp://127.0.0.1:5556`; port 0 takes a free one.
    keys : ServerKeys, optional
        With them the socket is encrypted, and only clients on the allow-list get anything.
    insecure : bool
        Lets an endpoint be used without keys that other machines can reach.
    high_water_mark : int
        Messages that wait for each slow listener.

    Attributes
    ----------
    endpoint : str
        Where listeners connect.
    dropped : int
        Messages that could not even be handed to ZeroMQ.
    refused : int
        Clients that were turned away for their key.

    Raises
    ------
    SecurityError
        The endpoint leaves the machine, and there are no keys.
    SinkError
        The port is taken, or the endpoint is none.
    """

    def __init__(
        self,
        endpoint: str,
        keys: ServerKeys | None = None,
        *,
        insecure: bool = False,
        high_water_mark: int = HIGH_WATER_MARK,
    ) -> None:
        check_endpoint(endpoint, keys=keys is not None, insecure=insecure)
        self.dropped = 0
        self._guard = _Guard(keys.clients if keys else frozenset())
        self._context: Any = zmq.Context()
        self._authenticator: Any = None
        self._socket: Any = self._context.socket(zmq.PUB)
        self._socket.setsockopt(zmq.SNDHWM, high_water_mark)
        self._socket.setsockopt(zmq.LINGER, LINGER_MS)
        self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_INCOMING_BYTES)
        self._socket.setsockopt(zmq.HANDSHAKE_IVL, _HANDSHAKE_MS)
        if endpoint.startswith("tcp://["):
            self._socket.setsockopt(zmq.IPV6, 1)
        if keys is not None:
            # All before the bind: a client that came in between would not be asked for its key.
            self._authenticator = ThreadAuthenticator(self._context)
            self._authenticator.start()
            self._authenticator.configure_curve_callback("*", self._guard)
            self._socket.curve_server = True
            self._socket.curve_publickey, self._socket.curve_secretkey = keys.public, keys.secret
        try:
            self._socket.bind(endpoint)
        except zmq.ZMQError as error:
            self.close()
            taken = error.errno == zmq.EADDRINUSE
            hint = (
                "another program has it, perhaps a second decoder; choose another port by --zmq"
                if taken
                else str(error)
            )
            raise SinkError(f"cannot publish on {endpoint}: {hint}") from error
        self.endpoint = cast("bytes", self._socket.last_endpoint).decode()

    @property
    def refused(self) -> int:
        """Clients that were turned away for their key."""
        return self._guard.refused

    def send(self, frame: bytes) -> None:
        """Send one encoded message; never waits."""
        if len(frame) > MAX_BYTES:
            raise SinkError(f"a message of {len(frame)} bytes is more than the {MAX_BYTES} that listeners accept")
        try:
            self._socket.send(frame, zmq.DONTWAIT)
        except zmq.Again:
            self.dropped += 1

    def close(self) -> None:
        """Send what still waits, for a second at most, and close."""
        self._socket.close()
        if self._authenticator is not None:
            self._authenticator.stop()
        self._context.term()

    def __enter__(self) -> "ZmqPublisher":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class _Guard:
    """The allow-list, in the form that pyzmq asks."""

    def __init__(self, allowed: frozenset[bytes]) -> None:
        self._allowed = allowed
        self.refused = 0

    def callback(self, domain: str, key: bytes) -> bool:
        """Say whether a client with this public key, in the form of key files, may listen."""
        known = key in self._allowed
        self.refused += not known
        return known
