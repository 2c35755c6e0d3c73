"""Who may see the dashboard: this machine, or whoever has the token; and what is refused before it starts."""

import http.client
import socket
from urllib.parse import urlsplit

import pytest

from rtbrain.dashboard.server import SHORTEST_TOKEN, Address
from rtbrain.errors import SecurityError
from tests.system.test_cli import refused
from tests.system.test_dashboard import serving

pytestmark = [pytest.mark.slow, pytest.mark.live]

NOWHERE = "tcp://127.0.0.1:1"
UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": "bokeh, x",
}


def answer(url: str, path: str = "/", **headers: str) -> http.client.HTTPResponse:
    place = urlsplit(url)
    assert place.hostname is not None
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
    connection.request("GET", path, headers=headers)
    found = connection.getresponse()
    if found.status != 101:
        found.read()
    connection.close()
    return found


def test_without_the_token_nothing_is_shown() -> None:
    token = "a-secret-of-some-length"
    with serving(NOWHERE, "--token", token) as (url, _):
        assert url.endswith(f"/?token={token}")
        assert answer(url).status == 403
        assert answer(url, "/?token=another-secret-of-a-length").status == 403
        assert answer(url, "/ws", **UPGRADE, Origin=url).status == 403
        assert answer(url, "/autoload.js?bokeh-autoload-element=x").status == 403
        assert answer(url, "/metadata").status == 403
        opened = answer(url, f"/?token={token}")
        assert (opened.status, opened.headers["Location"]) == (302, "/")
        cookie = opened.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        name, _, rest = cookie.partition("=")
        assert answer(url, Cookie=f"{name}=another-secret-of-a-length").status == 403
        assert answer(url, Cookie=f"{name}={rest.partition(';')[0]}").status == 200


def test_on_this_machine_no_token_is_needed_but_other_sites_cannot_connect() -> None:
    with serving(NOWHERE) as (url, _):
        assert answer(url).status == 200
        assert answer(url, "/ws", **UPGRADE, Origin="http://elsewhere.example").status == 403
        assert answer(url, "/ws", **UPGRADE, Origin=url.rstrip("/")).status == 101


def test_for_other_machines_a_token_is_made() -> None:
    made = Address("0.0.0.0", 0).with_token().token
    assert made is not None
    assert len(made) >= 2 * SHORTEST_TOKEN
    assert made != Address("0.0.0.0", 0).with_token().token
    assert made not in repr(Address("0.0.0.0", 0, made))
    assert Address("localhost", 0).with_token().token is None
    with pytest.raises(SecurityError, match="letters, digits"):
        Address("0.0.0.0", 0, "not for an address & more")
    with pytest.raises(SecurityError, match="guessed"):
        Address("0.0.0.0", 0, "short")


def test_what_cannot_be_served_is_refused() -> None:
    assert "guessed" in refused("dashboard", "--token", "short")
    assert "is no endpoint" in refused("dashboard", "--zmq", "nonsense", "--port", 0)
    assert "belong together" in refused("dashboard", "--key", "x")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "choose another --port" in refused("dashboard", "--port", taken.getsockname()[1])
