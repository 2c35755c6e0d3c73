"""What the page says, as plain values: the condition and the newest decision, the statistics, the fixed facts."""

from collections import Counter
from typing import Any, Final

import numpy as np

from rtbrain.dashboard.feed import RECENT_S, Feed, Run, Session
from rtbrain.dashboard.heads import electrodes, topography
from rtbrain.dashboard.palette import line, look
from rtbrain.messages import UNLABELLED, Tokens
from rtbrain.microstates.stats import statistics
from rtbrain.watching import SILENT_S, longest_wait_s

_WORDS: Final = {
    "waiting": "Waiting for the EEG stream",
    "stalled": "EEG stalled",
    "lost": "EEG connection lost",
}


def present(feed: Feed, endpoint: str, now_s: float) -> dict[str, Any]:
    """Return what changes many times a second."""
    state, status = feed.newest.get("state"), feed.newest.get("status")
    return {
        **condition(feed, endpoint, now_s),
        "now_s": now_s,
        "decision": None if state is None else _decision(state),
        "status": status,
        "missed": feed.missed,
        "active": {run.band: run.state for run in feed.session.tokens.since(feed.session.tokens.total - 64)},
    }


def condition(feed: Feed, endpoint: str, now_s: float) -> dict[str, Any]:
    """Return in words whether what is shown is the present, and since when it is not."""
    status, state = feed.newest.get("status"), feed.newest.get("state")
    if feed.trouble:
        return _said("unreadable", "Messages cannot be read", feed.trouble)
    if feed.heard_s is None:
        return _said("waiting", "Waiting for the decoder", f"nothing has come from {endpoint} yet: is it running?")
    if now_s - feed.heard_s > SILENT_S:
        told = f"its last word: {status['trouble']}" if status and status["trouble"] else "it ended, or the network did"
        return _said("silent", "No word from the decoder", told, feed.heard_s)
    if status is not None and status["state"] in _WORDS:
        name = status["state"]
        since_s = None if name == "waiting" else now_s - status["silent_s"]
        return _said(name, _WORDS[name], status["trouble"], since_s)
    trouble = "" if status is None else status["trouble"]
    if state is None or feed.decided_s is None:
        return _said("waiting", "Waiting for the first decision", trouble)
    if now_s - feed.decided_s > longest_wait_s(feed.newest.get("meta")):  # a decoder that began anew, for one
        return _said("waiting", "Waiting for the next decision", trouble, feed.decided_s)
    return _said("live", "", trouble)


def _said(name: str, headline: str, detail: str, since_s: float | None = None) -> dict[str, Any]:
    return {"condition": name, "headline": headline, "detail": detail, "since_s": since_s}


def _decision(state: dict[str, Any]) -> dict[str, Any]:
    kept = ("seq", "signal_s", "label", "probabilities", "context", "trusted", "reasons", "age")
    return {name: state[name] for name in kept} | {"confidence": state["probabilities"][state["label"]]}


def facts(feed: Feed) -> dict[str, Any] | None:
    """Return what stays the same during a session; None before the decoder has said it."""
    meta = feed.newest.get("meta")
    if meta is None:
        return None
    channels = meta["channels"]
    missing = [name for name in (feed.session.bad[-1] if feed.session.bad else ()) if name not in channels]
    spots = electrodes([*channels, *missing])
    return {
        "bundle": meta["bundle"],
        "source": meta["source"],
        "parity": meta["parity"],
        "context_s": meta["context_s"],
        "classes": [{"name": name, **line(i)} for i, name in enumerate(meta["classes"])],
        "electrodes": [{"name": name, "x": x, "y": y} for name, (x, y) in spots.items()],
        "unplaced": [name for name in channels if name not in spots],
        "bands": [
            {
                "name": band["name"],
                "range": f"{band['low_hz']:g}-{band['high_hz']:g} Hz",
                "training": band.get("training"),
                "states": [
                    {
                        **dict(zip(("colour", "stripe"), look(i), strict=True)),
                        "image": topography(channels, band["maps"][i]) if band.get("maps") else "",
                    }
                    for i in range(band["n_states"])
                ],
            }
            for band in meta["bands"]
        ],
    }


def minute(feed: Feed) -> dict[str, Any] | None:
    """Return the microstates of the last minute by band, and how often each channel was bad; None before a meta."""
    meta, session = feed.newest.get("meta"), feed.session
    if meta is None:
        return None
    runs = _last_minute(session)
    bands = {}
    for band in meta["bands"]:
        own = [run for run in runs if run.band == band["name"]]
        found = statistics(_tokens(own, meta["token_rate_hz"]), band["n_states"], meta["token_rate_hz"])
        bands[band["name"]] = {
            "coverage": found.coverage.round(4).tolist(),
            "duration_s": (found.duration_ms / 1000).round(4).tolist(),
            "transitions": found.transitions.round(3).tolist(),
            "tokens": len(own),
        }
    often = Counter(name for bad in session.bad for name in bad)
    return {"bands": bands, "bad": {name: n / len(session.bad) for name, n in often.items()}}


def _last_minute(session: Session) -> list[Run]:
    runs = session.tokens.since(0)
    return [run for run in runs if run.published_s >= runs[-1].published_s - RECENT_S]


def _tokens(runs: list[Run], rate_hz: float) -> Tokens:
    """Return runs as tokens on the sample grid, without what statistics of time do not ask for."""
    state = np.array([UNLABELLED if run.state is None else run.state for run in runs], np.int64)
    start = np.round([run.start_s * rate_hz for run in runs]).astype(np.int64)
    duration = np.round([run.duration_s * rate_hz for run in runs]).astype(np.int64)
    nothing, band = np.zeros(len(runs)), np.zeros(len(runs), np.int64)
    return Tokens(state, start, duration, nothing, nothing, nothing, nothing, nothing, nothing, band)
