"""What a session's decisions rested on: the logged tokens, and what the model looked at, computed anew from the log.

The log holds the tokens with their attributes, and each decision says how many of them it rested on. So the whole
model, `decoder.onnx`, can be asked again, and must give the logged probabilities.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from rtbrain.decoder.bundle import Bundle, calibrated, load_bundle
from rtbrain.decoder.find import SHIPPED, bundles_in, find_bundle
from rtbrain.decoder.whole import WholeModel
from rtbrain.errors import ConfigError, RtbrainError, SourceError
from rtbrain.messages import UNLABELLED, FloatArray, IntArray, Tokens
from rtbrain.sinks.session_check import read_run
from rtbrain.tokens.inputs import Inputs, TokenInputs, Vocabulary

TOLERANCE: Final = 1e-4
"""Largest difference between a logged probability and the one that is computed again."""
_END_TOLERANCE_S: Final = 0.05
"""The end may be asked for as it is printed, rounded."""

Message = dict[str, Any]


@dataclass(frozen=True)
class Looked:
    """What the model looked at for one decision: the attention of CLS, mean over heads and layers."""

    difference: float
    """Between the logged and the recomputed probabilities, the largest."""
    own: float
    """On CLS itself: what the model holds to be so without looking at tokens."""
    weights: FloatArray
    """On each token."""
    start_s: FloatArray
    end_s: FloatArray
    names: list[str]
    """Band and state of each token."""

    def by_state(self) -> dict[str, tuple[float, float]]:
        """Return for each state its share of the attention and of the tokens, most attended first."""
        shares = dict.fromkeys(self.names, 0.0)
        for name, weight in zip(self.names, self.weights.tolist(), strict=True):
            shares[name] += weight
        tokens, total = Counter(self.names), max(float(self.weights.sum()), 1e-12)
        return {
            name: (shares[name] / total, tokens[name] / len(self.names))
            for name in sorted(shares, key=lambda name: -shares[name])
        }

    def newest(self, seconds: float) -> float:
        """Return the share of the attention on tokens that ended within the last seconds of the context."""
        recent = self.end_s > self.end_s[-1] - seconds
        return float(self.weights[recent].sum() / max(self.weights.sum(), 1e-12))

    def strongest(self, n: int) -> IntArray:
        """Return the rows of the tokens that were looked at most."""
        order: IntArray = np.argsort(-self.weights, kind="stable")[:n]
        return order


@dataclass
class Session:
    """One run of the decoder, as its log tells it."""

    run: str
    meta: Message
    messages: list[Message] = field(default_factory=list)

    def of(self, topic: str) -> list[Message]:
        """Return the messages of a topic."""
        return [each for each in self.messages if each["topic"] == topic]

    def decision_at(self, at_s: float) -> Message:
        """Return the decision nearest to a second of signal.

        Raises
        ------
        ConfigError
            The session ended before.
        """
        states = self.of("state")
        end_s = max(each["signal_s"] for each in states)
        if at_s > end_s + _END_TOLERANCE_S:
            raise ConfigError(
                f"there is no decision at {at_s:g} s: run {self.run} ends at {end_s:.2f} s; ask for a second before "
                "that, or name another run by --run"
            )
        return min(states, key=lambda each: abs(each["signal_s"] - at_s))

    def doubts(self) -> dict[str, int]:
        """Return for each reason not to trust how many decisions it held for; numbers within it do not count."""
        reasons: Counter[str] = Counter()
        for state in self.of("state"):
            reasons.update({_kind(reason) for reason in state["reasons"]})
        return dict(reasons.most_common())

    def changes(self) -> Iterator[tuple[float, str]]:
        """Give what happened and when, in seconds of signal: contexts that began, faults, markers."""
        context, source, at_s = None, None, 0.0
        for message in self.messages:
            if message["topic"] == "state":
                at_s = message["signal_s"]
                if message["context"]["number"] != context:
                    context = message["context"]["number"]
                    yield at_s, f"context {context} began: {message['context']['began']}"
                yield from ((at_s, f"marker {each['text']!r}") for each in message["markers"])
            elif message["topic"] == "status" and (message["state"], message["trouble"]) != source:
                source = (message["state"], message["trouble"])
                yield at_s, f"the source is {source[0]}" + (f": {source[1]}" if source[1] else "")


def load_session(folder: Path, run: str | None = None) -> Session:
    """Read the newest run of a log, or the one that is named.

    Raises
    ------
    SourceError
        There is no such run, or it ended before the decoder knew its stream.
    """
    name, read = read_run(folder, run)
    messages = list(read)
    meta = next((each for each in messages if each["topic"] == "meta"), None)
    if meta is None:
        told = [each["trouble"] for each in messages if each["topic"] == "status" and each["trouble"]]
        why = f"; its last word: {told[-1]}" if told else ""
        raise SourceError(
            f"run {name} in {folder} ended before its stream was decoded; it holds no decision{why}; "
            "another run of the folder can be named by --run (`rtbrain session check` lists them)"
        )
    return Session(name, meta, messages)


def bundle_of(session: Session, given: str | None = None) -> Bundle:
    """Return the bundle that made the session's decisions: the given one, or the one of this hash in sight.

    Raises
    ------
    ConfigError
        It is not there, or another one.
    """
    name, wanted = session.meta["bundle"], session.meta["bundle_sha256"]
    if given is not None:
        bundle = load_bundle(find_bundle(given))
        if bundle.sha256 != wanted:
            raise ConfigError(f"{bundle.folder} is not the bundle that decoded this session: {name}, SHA-256 {wanted}")
        return bundle
    for folder in (bundles_in(SHIPPED) | bundles_in(Path("models"))).values():
        try:
            bundle = load_bundle(folder)
        except RtbrainError:  # a damaged one is not the one
            continue
        if bundle.sha256 == wanted:
            return bundle
    raise ConfigError(f"the bundle of this session, {name} with SHA-256 {wanted}, is not in sight; give --bundle")


class Again:
    """The session's tokens as its model read them, to ask it again."""

    def __init__(self, session: Session, bundle: Bundle) -> None:
        self._bundle, self._model = bundle, WholeModel(bundle.decoder)
        self._rate_hz = float(session.meta["token_rate_hz"])
        self._bands = [band["name"] for band in session.meta["bands"]]
        parts: list[list[Message]] = [[]]
        epochs = [0]
        self._seen: dict[int, tuple[int, int]] = {}  # by number of decision: labelled tokens before it, and the epoch
        labelled = 0
        ends: dict[str, float] = {}
        newest_s = float("-inf")
        for message in session.messages:
            if message["topic"] == "state":
                self._seen[message["seq"]] = (labelled, epochs[-1])
            if message["topic"] != "token":
                continue
            start_s: float = message["start_s"]
            end_s: float = start_s + message["duration_s"]
            back = end_s < newest_s - 0.5 / self._rate_hz
            # Tokens of a band join on to each other, unless the signal was interrupted.
            if back or start_s > ends.get(message["band"], start_s) + 0.5 / self._rate_hz:
                parts.append([])
                epochs.append(epochs[-1] + back)
                ends.clear()
            parts[-1].append(message)
            ends[message["band"]] = newest_s = end_s
            labelled += message["state"] is not None
        self._join(parts, epochs)

    def _join(self, parts: list[list[Message]], epochs: list[int]) -> None:
        schema = self._model.schema
        describe = TokenInputs(Vocabulary(schema.states), schema.attributes, self._rate_hz)
        inputs: list[Inputs] = []
        for part in parts:
            describe.reset()
            inputs.append(describe(self._tokens(part)))
        self._ids = np.concatenate([each.ids for each in inputs])
        self._attributes = np.concatenate([each.attributes for each in inputs])
        self._start_s = np.concatenate([each.start_s for each in inputs])
        self._end_s = np.concatenate([each.end_s for each in inputs])
        self._epoch = np.repeat(epochs, [len(each) for each in inputs])
        self._names = [
            f"{each['band']} {each['state']}" for part in parts for each in part if each["state"] is not None
        ]

    def _tokens(self, messages: list[Message]) -> Tokens:
        def column(get: Any, kind: type) -> Any:
            return np.array([get(each) for each in messages], kind)

        gfp, zeros = column(lambda each: each["gfp_uv"], float), np.zeros(len(messages))
        return Tokens(
            state=column(lambda each: UNLABELLED if each["state"] is None else each["state"], int),
            start=column(lambda each: round(each["start_s"] * self._rate_hz), int),
            duration=column(lambda each: round(each["duration_s"] * self._rate_hz), int),
            gfp=gfp,
            gfp_rel=column(lambda each: each["gfp_rel"], float),
            corr=column(lambda each: each["corr"], float),
            quality=column(lambda each: each["quality"], float),
            power=gfp * gfp,
            explained=zeros,
            band=column(lambda each: self._bands.index(each["band"]), int),
        )

    def look(self, state: Message) -> Looked | None:
        """Ask the model again about a decision; None if the log lacks tokens that it rested on."""
        rows = self._rows(state)
        if rows is None:
            return None
        ids, attributes = self._ids[rows], self._attributes[rows]
        found = calibrated(self._model.probabilities(ids, attributes), self._bundle.temperature)
        logged = np.array([state["probabilities"][name] for name in self._bundle.classes])
        weights = self._model.attention(ids, attributes).mean((0, 1))
        return Looked(
            difference=float(np.abs(found - logged).max()),
            own=float(weights[0]),
            weights=weights[1:],
            start_s=self._start_s[rows],
            end_s=self._end_s[rows],
            names=[self._names[row] for row in rows.tolist()],
        )

    def _rows(self, state: Message) -> IntArray | None:
        """Return the labelled tokens of a decision's context.

        A context holds the newest tokens, but for those that began before it did: a long one of another band may
        have ended later.
        """
        seen, epoch = self._seen[state["seq"]]
        n = state["context"]["tokens"]
        if not seen:
            return None
        began_s = self._end_s[seen - 1] - state["context"]["seconds"] - 0.5 / self._rate_hz
        fits = (self._start_s[:seen] >= began_s) & (self._epoch[:seen] == epoch)
        rows: IntArray = np.flatnonzero(fits)[-n:]
        return rows if len(rows) == n else None


def _kind(reason: str) -> str:
    """Return a reason without its numbers, so that equal ones count together."""
    return " ".join("..." if any(map(str.isdigit, word)) else word for word in reason.split())
