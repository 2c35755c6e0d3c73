"""The page as a web server: on this machine alone, or for whoever has the token."""

import logging
import re
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from time import time
from typing import Any, Final

from bokeh.application import Application
from bokeh.application.handlers import FunctionHandler
from bokeh.document import Document
from bokeh.server.auth_provider import AuthProvider, NullAuth
from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop, PeriodicCallback
from tornado.web import Finish, HTTPError, RequestHandler

from rtbrain.dashboard.feed import Feed
from rtbrain.dashboard.page import Page
from rtbrain.errors import SecurityError, SinkError
from rtbrain.security import ClientKeys, stays_here
from rtbrain.sinks.zmq_sub import Subscriber

RECEIVE_MS: Final = 50
STOP_MS: Final = 100
SHORTEST_TOKEN: Final = 16
MOST_FROM_BROWSER: Final = 1 << 20
"""Bytes of a message; the page sends next to nothing."""


@dataclass(frozen=True)
class Address:
    """Where the page is served."""

    host: str
    port: int
    """0 takes a free one."""
    token: str | None = field(default=None, repr=False)
    """The secret that opens the page; made if it is left out and other machines can reach the page."""

    def __post_init__(self) -> None:
        if self.token is None:
            return
        if len(self.token) < SHORTEST_TOKEN:
            raise SecurityError(
                f"a token of {len(self.token)} characters can be guessed; give at least {SHORTEST_TOKEN}, or none and "
                "one is made"
            )
        if not re.fullmatch(r"[\w-]+", self.token, re.ASCII):
            raise SecurityError("a token is part of an address: use letters, digits, - and _ only")

    @property
    def is_local(self) -> bool:
        """Tell whether only this machine can reach the page."""
        return stays_here(f"tcp://{self.host}:{self.port}")

    def with_token(self) -> "Address":
        """Return the address with the token that it needs."""
        if self.is_local or self.token is not None:
            return self
        return Address(self.host, self.port, secrets.token_urlsafe(24))


class TokenAuth(AuthProvider):
    """Lets those in who know the token: once in the address of the page, then in a cookie."""

    def __init__(self, token: str) -> None:
        self._token = token
        # Cookies know no ports: two dashboards of one machine must not take each other's.
        self._cookie = f"rtbrain-{sha256(token.encode()).hexdigest()[:12]}"
        super().__init__()

    @property
    def get_user_async(self) -> Any:
        """Return what every request for the page, its data or its connection is asked first."""
        return self._admit

    async def _admit(self, request: RequestHandler) -> str:
        given = request.get_query_argument("token", None)
        if given is not None and self._fits(given):
            # The address with the secret should stay neither in the browser's history nor in its bar.
            request.set_cookie(self._cookie, self._token, httponly=True, samesite="Strict")
            request.redirect("/")
            raise Finish
        if given is not None or not self._fits(request.get_cookie(self._cookie) or ""):
            raise HTTPError(403, reason="The address of this page ends in ?token=..., as the server printed it")
        return "whoever has the token"

    def _fits(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self._token.encode())

    # Bokeh asks for all of these; nobody is ever sent to a login.
    get_user = get_login_url = login_handler = logout_url = logout_handler = None
    login_url = "/"


def serve(
    endpoint: str,
    keys: ClientKeys | None,
    address: Address,
    stop: Callable[[], bool],
    ready: Callable[[str], None],
) -> None:
    """Serve the page until asked to stop.

    Parameters
    ----------
    endpoint : str
        Where the decoder publishes.
    keys : ClientKeys, optional
        For a decoder that asks for them.
    address : Address
        Where the page is served.
    stop : callable
        Is asked again and again whether to end.
    ready : callable
        Is told the address to open, as soon as it can be opened.

    Raises
    ------
    SinkError
        The port is taken, or the endpoint is none.
    """
    address = address.with_token()
    logging.getLogger("bokeh").setLevel(logging.ERROR)  # who opens and closes the page is no news
    with _listening(address) as listening, Subscriber(endpoint, keys=keys) as subscriber:
        feed = Feed(subscriber)
        server = _server(feed, endpoint, address, listening)
        tasks = [
            PeriodicCallback(lambda: feed.receive(time()), RECEIVE_MS),
            PeriodicCallback(lambda: IOLoop.current().stop() if stop() else None, STOP_MS),
        ]
        server.start()
        for task in tasks:
            task.start()
        ready(_url(address, server.port))
        try:
            IOLoop.current().start()
        finally:
            for task in tasks:
                task.stop()
            server.stop()


def _server(feed: Feed, endpoint: str, address: Address, listening: socket.socket) -> BaseServer:
    """Return the server; Bokeh's own helper knows no way to allow any port of this machine."""

    def opened(document: Document) -> None:
        Page(document, feed, endpoint)

    application = BokehTornado(
        {"/": Application(FunctionHandler(opened))},
        # Pages of other sites must not connect. With a token, their visitor's browser would not send the cookie along.
        extra_websocket_origins=["127.0.0.1:*", "localhost:*", "[::1]:*"] if address.token is None else ["*"],
        auth_provider=NullAuth() if address.token is None else TokenAuth(address.token),
        websocket_max_message_size_bytes=MOST_FROM_BROWSER,
    )
    http = HTTPServer(application)
    http.add_sockets([listening])
    return BaseServer(IOLoop.current(), application, http)


def _listening(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        made = socket.create_server((address.host, address.port), family=family)
    except OSError as error:
        raise SinkError(
            f"the page cannot be served on {address.host}:{address.port} ({error.strerror}); choose another --port or "
            "--host"
        ) from error
    made.setblocking(False)
    return made


def _url(address: Address, port: int | None) -> str:
    """Return what to open in a browser."""
    everywhere = address.host in ("", "0.0.0.0", "::")
    host = socket.gethostname() if everywhere else address.host
    place = f"[{host}]" if ":" in host else host
    return f"http://{place}:{port}/" + (f"?token={address.token}" if address.token else "")
