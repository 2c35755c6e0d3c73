"""Publishing over real sockets: counted, encrypted where it leaves the machine, and never slowed down by a listener."""

import json
import stat
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import zmq

from rtbrain.errors import SecurityError, SinkError
from rtbrain.protocol import MAX_BYTES, Encoder
from rtbrain.security import ServerKeys, load_client_keys, load_server_keys, new_keys, stays_here
from rtbrain.sinks.zmq_pub import ZmqPublisher
from rtbrain.sinks.zmq_sub import Subscriber
from tests.unit.sinks.examples import STATE, STATUS

HERE = "tcp://127.0.0.1:0"
PATIENCE_S = 20.0


def joined(publisher: ZmqPublisher, subscriber: Subscriber, encoder: Encoder) -> None:
    """Publish until the subscriber has received something: joining takes a moment."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        publisher.send(encoder.frame(STATUS, 0.0))
        if subscriber.receive(0.02) is not None:
            break
    else:
        pytest.fail("nothing was received")
    while subscriber.receive(0.1) is not None:
        pass


class TestPlain:
    def test_messages_arrive_in_order_and_by_topic(self):
        encoder = Encoder()
        with ZmqPublisher(HERE) as publisher, Subscriber(publisher.endpoint, ("state", "status")) as everything:
            joined(publisher, everything, encoder)
            with Subscriber(publisher.endpoint, ("status",)) as only:
                joined(publisher, only, encoder)
                while everything.receive(0.1) is not None:
                    pass
                for _ in range(100):
                    publisher.send(encoder.frame(STATE, 0.0))
                publisher.send(encoder.frame(STATUS, 0.0))
                got = [everything.receive(PATIENCE_S) for _ in range(101)]
                assert [each["seq"] for each in got[:100]] == list(range(100))
                assert got[100]["topic"] == "status"
                assert only.receive(PATIENCE_S)["topic"] == "status"
                assert (everything.missed, publisher.dropped) == (0, 0)

    def test_lost_messages_are_counted(self):
        encoder = Encoder()
        with ZmqPublisher(HERE) as publisher, Subscriber(publisher.endpoint) as subscriber:
            joined(publisher, subscriber, encoder)
            for i in range(10):
                frame = encoder.frame(STATE, 0.0)
                if i not in (3, 4, 7):
                    publisher.send(frame)
            for _ in range(7):
                assert subscriber.receive(PATIENCE_S) is not None
            assert subscriber.missed == 3

    def test_a_listener_that_never_reads_harms_nobody(self):
        encoder, long = Encoder(), replace(STATE, reasons=("x" * 50_000,))
        with (
            zmq.Context() as context,
            context.socket(zmq.SUB) as hung,
            ZmqPublisher(HERE, high_water_mark=100) as publisher,
        ):
            hung.setsockopt(zmq.RCVHWM, 1)
            hung.setsockopt(zmq.LINGER, 0)
            hung.setsockopt(zmq.SUBSCRIBE, b"")
            hung.connect(publisher.endpoint)
            with Subscriber(publisher.endpoint) as healthy:
                joined(publisher, healthy, encoder)
                for _ in range(1000):  # 50 MB: far more than the high-water mark and all buffers in between
                    publisher.send(encoder.frame(long, 0.0))
                    assert healthy.receive(PATIENCE_S) is not None
                assert (healthy.missed, publisher.dropped) == (0, 0)
            last = 0
            while hung.poll(200):
                last = json.loads(hung.recv().partition(b" ")[2])["seq"]
            assert last < 999  # it did lose some

    def test_a_taken_port_is_an_error(self):
        with ZmqPublisher(HERE) as first, pytest.raises(SinkError, match="another program has it"):
            ZmqPublisher(first.endpoint)

    def test_nonsense_is_an_error(self):
        with pytest.raises(SinkError, match="cannot publish"):
            ZmqPublisher("tcp://127.0.0.300:0", insecure=True)

    @pytest.mark.parametrize("open_socket", [ZmqPublisher, Subscriber])
    @pytest.mark.parametrize(
        "endpoint", ["tcp://127.0.0.1:70000", "tcp://127.0.0.1:no-port", "127.0.0.1:5556", "tcp://"]
    )
    def test_what_is_no_endpoint_is_refused_before_zeromq_misreads_it(self, open_socket, endpoint):
        with pytest.raises(SinkError, match=r"is no endpoint .*tcp://127.0.0.1:5556"):
            open_socket(endpoint)

    def test_too_long_a_message_is_refused(self):
        with ZmqPublisher(HERE) as publisher, pytest.raises(SinkError, match="more than"):
            publisher.send(b"state " + b"x" * MAX_BYTES)


class TestSecurity:
    @pytest.mark.parametrize(
        ("endpoint", "here"),
        [
            ("tcp://127.0.0.1:5556", True),
            ("tcp://127.8.0.1:*", True),
            ("tcp://localhost:5556", True),
            ("tcp://[::1]:5556", True),
            ("ipc:///tmp/x", True),
            ("tcp://*:5556", False),
            ("tcp://0.0.0.0:5556", False),
            ("tcp://eth0:5556", False),
            ("tcp://192.168.1.5:5556", False),
            ("tcp://localhost.evil.org:5556", False),
            ("tcp://[::]:5556", False),
            ("epgm://127.0.0.1;239.1.1.1:5555", False),
        ],
    )
    def test_what_stays_on_this_machine(self, endpoint, here):
        assert stays_here(endpoint) is here

    def test_other_interfaces_need_keys_or_insistence(self):
        with pytest.raises(SecurityError, match="anybody there could listen"):
            ZmqPublisher("tcp://0.0.0.0:0")
        ZmqPublisher("tcp://0.0.0.0:0", insecure=True).close()

    @pytest.fixture
    def keys(self, tmp_path: Path) -> ServerKeys:
        _, secret = new_keys(tmp_path, "decoder")
        public, _ = new_keys(tmp_path, "friend")
        new_keys(tmp_path, "stranger")
        clients = tmp_path / "clients"
        clients.mkdir()
        (clients / "friend.key").write_bytes(public.read_bytes())
        return load_server_keys(secret, clients)

    def test_only_who_is_on_the_list_gets_anything(self, keys: ServerKeys, tmp_path: Path):
        encoder = Encoder()
        friend, stranger = (
            load_client_keys(tmp_path / f"{name}.key_secret", tmp_path / "decoder.key")
            for name in ("friend", "stranger")
        )
        with ZmqPublisher("tcp://0.0.0.0:0", keys) as publisher:
            here = publisher.endpoint.replace("0.0.0.0", "127.0.0.1")
            with (
                Subscriber(here, keys=stranger) as refused,
                Subscriber(here) as without,
                Subscriber(here, keys=friend) as welcome,
            ):
                joined(publisher, welcome, encoder)
                deadline = time.monotonic() + PATIENCE_S
                while publisher.refused == 0 and time.monotonic() < deadline:
                    publisher.send(encoder.frame(STATE, 0.0))
                    time.sleep(0.05)
                for _ in range(20):
                    publisher.send(encoder.frame(STATE, 0.0))
                assert publisher.refused > 0
                assert welcome.receive(PATIENCE_S) is not None
                assert refused.receive(0.3) is None
                assert without.receive(0.3) is None

    def test_a_false_decoder_is_not_listened_to(self, keys: ServerKeys, tmp_path: Path):
        _, secret = new_keys(tmp_path, "false")
        other = load_server_keys(secret, tmp_path / "clients")
        friend = load_client_keys(tmp_path / "friend.key_secret", tmp_path / "decoder.key")
        encoder = Encoder()
        with ZmqPublisher(HERE, other) as publisher, Subscriber(publisher.endpoint, keys=friend) as subscriber:
            for _ in range(10):
                publisher.send(encoder.frame(STATE, 0.0))
                assert subscriber.receive(0.05) is None

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
    def test_secrets_are_the_owners_and_never_replaced(self, tmp_path: Path):
        public, secret = new_keys(tmp_path / "new", "decoder")
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
        assert "secret" not in public.read_text().lower().split("curve")[-1]
        before = secret.read_bytes()
        with pytest.raises(SecurityError, match="exists"):
            new_keys(tmp_path / "new", "decoder")
        assert secret.read_bytes() == before
        assert before.decode().split('secret-key = "')[1][:40] not in repr(load_client_keys(secret, public))

    def test_wrong_files_are_refused(self, tmp_path: Path, keys: ServerKeys):
        with pytest.raises(SecurityError, match="does not exist"):
            load_client_keys(tmp_path / "nobody.key_secret", tmp_path / "decoder.key")
        with pytest.raises(SecurityError, match="does not hold a secret key"):
            load_client_keys(tmp_path / "friend.key", tmp_path / "decoder.key")
        (tmp_path / "text.key").write_text("no key")
        with pytest.raises(SecurityError, match="no key file"):
            load_client_keys(tmp_path / "friend.key_secret", tmp_path / "text.key")
        (tmp_path / "empty").mkdir()
        with pytest.raises(SecurityError, match="nobody could listen"):
            load_server_keys(tmp_path / "decoder.key_secret", tmp_path / "empty")
        with pytest.raises(SecurityError, match="no name for a key"):
            new_keys(tmp_path, "../up")
