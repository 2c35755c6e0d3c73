"""Who may listen: output stays on this machine unless both sides hold keys (CURVE), or the user insists.

A key pair is two files: NAME.key_secret stays where it was made, NAME.key is copied to the other side. The decoder has
a pair, each client has one; the decoder lets in the clients whose NAME.key lies in its folder of clients.
"""

import ipaddress
import re
from dataclasses import dataclass, field
from pathlib import Path

from rtbrain.errors import SecurityError, SinkError

PUBLIC, SECRET = ".key", ".key_secret"
MAX_PORT = 65_535


@dataclass(frozen=True)
class ServerKeys:
    """The decoder's pair and its allow-list."""

    public: bytes
    secret: bytes = field(repr=False)
    clients: frozenset[bytes] = frozenset()
    """Public keys of those who may listen; nobody else gets anything."""


@dataclass(frozen=True)
class ClientKeys:
    """A listener's pair, and the public key that the decoder must prove to own."""

    public: bytes
    secret: bytes = field(repr=False)
    server: bytes = b""


def new_keys(folder: Path, name: str) -> tuple[Path, Path]:
    """Make a key pair and return the files, public and secret; existing files are never replaced."""
    import zmq.auth

    if not re.fullmatch(r"[\w-]+", name):
        raise SecurityError(f"{name!r} is no name for a key: letters, digits, - and _ only")
    folder.mkdir(parents=True, exist_ok=True)
    public, secret = folder / f"{name}{PUBLIC}", folder / f"{name}{SECRET}"
    for path in (public, secret):
        if path.exists():
            raise SecurityError(f"{path} exists; whoever uses it would be locked out: choose another name or folder")
    # Made before the key is in it, so that the secret is at no time readable to others.
    secret.touch(mode=0o600)
    zmq.auth.create_certificates(str(folder), name)
    return public, secret


def _load(path: Path, *, secret: bool) -> tuple[bytes, bytes]:
    import zmq.auth

    if not path.is_file():
        raise SecurityError(f"the key file {path} does not exist; make a pair by `rtbrain keys new`")
    try:
        public, private = zmq.auth.load_certificate(str(path))
    except (OSError, ValueError) as error:
        raise SecurityError(f"{path} is no key file ({error}); make a pair by `rtbrain keys new`") from error
    if len(public) != 40 or (secret and len(private or b"") != 40):
        what = "a secret key" if secret else "a public key"
        raise SecurityError(f"{path} does not hold {what}; secret keys are in files that end in {SECRET}")
    return public, private or b""


def load_server_keys(secret: Path, clients: Path) -> ServerKeys:
    """Read the decoder's pair, and all clients' public keys in a folder.

    Raises
    ------
    SecurityError
        A key is missing or damaged, or nobody is in the folder.
    """
    public, private = _load(secret, secret=True)
    if not clients.is_dir():
        raise SecurityError(f"{clients} is no folder; put the {PUBLIC} file of each client into one")
    allowed = frozenset(_load(path, secret=False)[0] for path in sorted(clients.glob(f"*{PUBLIC}")))
    if not allowed - {public}:
        raise SecurityError(f"no client's {PUBLIC} file is in {clients}; nobody could listen: copy their keys there")
    return ServerKeys(public, private, allowed)


def load_client_keys(secret: Path, server: Path) -> ClientKeys:
    """Read a client's pair and the decoder's public key."""
    public, private = _load(secret, secret=True)
    return ClientKeys(public, private, _load(server, secret=False)[0])


def stays_here(endpoint: str) -> bool:
    """Tell whether only this machine can connect to an endpoint."""
    transport, _, address = endpoint.partition("://")
    if transport in ("ipc", "inproc"):
        return True
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return transport == "tcp" and ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, an interface or *
        return False


def check_address(endpoint: str) -> None:
    """Refuse what ZeroMQ would misread: without a transport, or with a port that it would wrap into another one."""
    transport, mark, rest = endpoint.partition("://")
    port = rest.rpartition(":")[2]
    wrong = "" if mark and rest else "it names no transport"
    if transport == "tcp" and not (port == "*" or (port.isdecimal() and int(port) <= MAX_PORT)):
        wrong = f"its port {port!r} is no number up to {MAX_PORT}"
    if wrong:
        raise SinkError(f"{endpoint!r} is no endpoint ({wrong}); write for example tcp://127.0.0.1:5556")


def check_endpoint(endpoint: str, *, keys: bool, insecure: bool) -> None:
    """Refuse what is no endpoint, and to send what a brain does over a network where anybody may listen."""
    check_address(endpoint)
    if not (keys or insecure or stays_here(endpoint)):
        raise SecurityError(
            f"{endpoint} can be reached from other machines, and without keys anybody there could listen: make keys by "
            "`rtbrain keys new`, or say --insecure, or use tcp://127.0.0.1:PORT"
        )
