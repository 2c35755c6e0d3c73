"""What was received from a decoder, kept so that an hour costs no more than a minute: every buffer has an end."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Final, Generic, TypeVar

from rtbrain.errors import SinkError
from rtbrain.sinks.zmq_sub import Subscriber

RECENT_S: Final = 60.0
"""Decisions and tokens of so long are kept one by one."""
BIN_S: Final = 5.0
"""Older decisions are kept as means over so long ..."""
HISTORY_S: Final = 3600.0
"""... for an hour."""
N_BINS: Final = ceil(HISTORY_S / BIN_S)
MOST_DECISIONS: Final = 6000
"""A minute at a hundred decisions a second."""
MOST_TOKENS: Final = 12_000
"""A minute of eight bands at 25 tokens a second."""
MOST_AT_ONCE: Final = 5000
"""Messages that are taken in before the page gets its turn: a decoder that sends a flood must not freeze it."""
_CLOCKS_APART_S: Final = 1.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision as it is drawn."""

    at_s: float
    """Wall clock of this machine when it was published."""
    probabilities: tuple[float, ...]
    trusted: bool


@dataclass(frozen=True, slots=True)
class Run:
    """A token as it is drawn."""

    band: str
    state: int | None
    start_s: float
    duration_s: float
    published_s: float


@dataclass(slots=True)
class Bin:
    """Decisions of a few seconds, summed."""

    start_s: float
    sums: list[float]
    n: int = 0
    trusted: int = 0

    def add(self, decision: Decision) -> None:
        """Take one more."""
        self.sums = [total + each for total, each in zip(self.sums, decision.probabilities, strict=True)]
        self.n += 1
        self.trusted += decision.trusted

    def mean(self) -> Decision:
        """Return all as one, at their middle; trusted if at least half of them were."""
        means = tuple(total / self.n for total in self.sums)
        return Decision(self.start_s + BIN_S / 2, means, 2 * self.trusted >= self.n)


class Kept(Generic[T]):
    """The newest items of a row, each with its number, so that every reader can ask for what it has not seen."""

    def __init__(self, most: int) -> None:
        self.total = 0
        self._items: deque[T] = deque(maxlen=most)

    def add(self, item: T) -> None:
        """Take the next item; the oldest one goes when there are too many."""
        self._items.append(item)
        self.total += 1

    def since(self, number: int) -> Sequence[T]:
        """Return the items from this number on, as far as they are still there."""
        n = min(len(self._items), self.total - number)
        return [self._items[i] for i in range(len(self._items) - n, len(self._items))]


@dataclass
class Session:
    """All that belongs to one run of one model: another one must not go on in its curves."""

    key: tuple[Any, ...] = ()
    decisions: Kept[Decision] = field(default_factory=lambda: Kept[Decision](MOST_DECISIONS))
    bins: Kept[Decision] = field(default_factory=lambda: Kept[Decision](N_BINS))
    tokens: Kept[Run] = field(default_factory=lambda: Kept[Run](MOST_TOKENS))
    bad: deque[tuple[str, ...]] = field(default_factory=lambda: deque(maxlen=round(RECENT_S)))
    """Bad channels of the newest status messages, which come each second."""
    open_bin: Bin | None = None
    classes: tuple[str, ...] = ()


class Feed:
    """Messages of a decoder, received when asked to, and what the page draws of them.

    Attributes
    ----------
    newest : dict
        The newest message of each topic.
    session : Session
        The history; replaced when the decoder comes with another model, stream or start.
    heard_s : float or None
        Wall clock when something came last.
    decided_s : float or None
        Wall clock when a decision came last.
    trouble : str
        Why a message could not be read; empty if all could.
    """

    def __init__(self, subscriber: Subscriber) -> None:
        self._subscriber = subscriber
        self._offset_s: float | None = None
        self.newest: dict[str, dict[str, Any]] = {}
        self.session = Session()
        self.heard_s: float | None = None
        self.decided_s: float | None = None
        self.trouble = ""

    @property
    def missed(self) -> int:
        """Messages that were published but did not arrive here."""
        return self._subscriber.missed

    def receive(self, now_s: float) -> None:
        """Take in what has come; never waits."""
        for _ in range(MOST_AT_ONCE):
            try:
                values = self._subscriber.receive(0.0)
            except SinkError as error:
                self.trouble = str(error)
                continue
            if values is None:
                return
            self.take(values, now_s)

    def take(self, values: dict[str, Any], now_s: float) -> None:
        """Take one message."""
        topic = values["topic"]
        self.newest[topic], self.heard_s, self.trouble = values, now_s, ""
        if topic == "meta":
            self._begin(values)
        elif topic == "token":
            self.session.tokens.add(Run(*(values[name] for name in Run.__slots__)))
        elif topic == "state":
            self.decided_s = now_s
            self._decided(values, now_s)
        elif topic == "status":
            self.session.bad.append(tuple(values["bad_channels"]))

    def _begin(self, meta: dict[str, Any]) -> None:
        key = (meta["started"], meta["bundle_sha256"], tuple(meta["classes"]), tuple(meta["channels"]))
        if not self.session.key:  # what came before the first meta belongs to it
            self.session.key = key
        elif key != self.session.key:
            self.session = Session(key)

    def _decided(self, values: dict[str, Any], now_s: float) -> None:
        # Messages are taken in by the batch; the decoder's own clock says how far apart they were.
        published_s = float(values["published_s"])
        if self._offset_s is None or abs(now_s - published_s - self._offset_s) > _CLOCKS_APART_S:
            self._offset_s = now_s - published_s
        decision = Decision(
            published_s + self._offset_s, tuple(values["probabilities"].values()), bool(values["trusted"])
        )
        classes = tuple(values["probabilities"])
        if self.session.classes not in ((), classes):  # the first decisions of another model, before its meta
            self.session = Session()
        session, self.session.classes = self.session, classes
        session.decisions.add(decision)
        start_s = decision.at_s - decision.at_s % BIN_S
        if session.open_bin is not None and session.open_bin.start_s != start_s:
            session.bins.add(session.open_bin.mean())
            session.open_bin = None
        if session.open_bin is None:
            session.open_bin = Bin(start_s, [0.0] * len(decision.probabilities))
        session.open_bin.add(decision)
