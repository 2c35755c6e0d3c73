"""Where messages go: every one to ZeroMQ and to the session log, decisions also to an LSL stream."""

from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import pylsl

from rtbrain.protocol import Encoder
from rtbrain.published import LogMeta, Message, StateMessage
from rtbrain.security import ServerKeys
from rtbrain.sinks.lsl_out import LslStateOutlet
from rtbrain.sinks.session_log import SessionLog
from rtbrain.sinks.zmq_pub import ZmqPublisher


@dataclass
class Outputs:
    """The open outputs; `open_outputs` makes one."""

    zmq: ZmqPublisher
    lsl: LslStateOutlet | None = None
    log: SessionLog | None = None
    encoder: Encoder = field(default_factory=Encoder)

    def publish(self, message: Message) -> None:
        """Send a message everywhere; never waits."""
        frame = self.encoder.frame(message, pylsl.local_clock())
        self.zmq.send(frame)
        if self.lsl is not None and isinstance(message, StateMessage):
            self.lsl.send(message)
        if self.log is not None:
            self.log.write(frame)

    def log_meta(self) -> LogMeta:
        """Return how the session log is doing."""
        if self.log is None:
            return LogMeta("off", 0, 0, "")
        trouble = self.log.trouble
        return LogMeta("failing" if trouble else "writing", self.log.written, self.log.dropped, trouble)

    def close(self) -> None:
        """Send and write what still waits, and close everything, whatever fails on the way."""
        try:
            if self.lsl is not None:
                self.lsl.close()
        finally:
            try:
                self.zmq.close()
            finally:
                if self.log is not None:
                    self.log.close()

    def __enter__(self) -> "Outputs":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def open_outputs(
    endpoint: str,
    classes: tuple[str, ...],
    *,
    keys: ServerKeys | None = None,
    lsl_name: str | None = None,
    log: Path | None = None,
    insecure: bool = False,
) -> Outputs:
    """Open the outputs that are asked for, all of them or none.

    Raises
    ------
    SinkError
        The port is taken, or the log's folder cannot be written.
    SecurityError
        Something would leave the machine unprotected.
    """
    outputs = Outputs(ZmqPublisher(endpoint, keys, insecure=insecure))
    try:
        if lsl_name is not None:
            outputs.lsl = LslStateOutlet(lsl_name, classes, insecure=insecure)
        if log is not None:
            outputs.log = SessionLog(log)
    except BaseException:
        outputs.close()
        raise
    return outputs
