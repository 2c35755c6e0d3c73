"""A session log on the screen: what was decided over time, and why."""

from collections.abc import Callable
from time import monotonic, sleep
from typing import Any

from rich.markup import escape

from rtbrain.console import console, table
from rtbrain.session_replay import TOLERANCE, Again, Looked, Message, Session

ROWS = 30
"""Decisions that are shown unless it is said how many."""
NEWEST_S = 10.0
STRONGEST = 10


def show_session(
    session: Session,
    again: Again | None,
    *,
    every_s: float | None = None,
    speed: float | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> float:
    """Print a session; return the largest difference between logged and recomputed probabilities.

    Parameters
    ----------
    session : Session
        The log.
    again : Again, optional
        The model, to tell what it looked at.
    every_s : float, optional
        Seconds of signal between two decisions that are shown.
    speed : float, optional
        Show them at this many times the speed at which they were made; all at once without it.
    stop : callable
        Is asked whether to end.
    """
    states, meta = session.of("state"), session.meta
    source = meta["source"]["name"] if meta["source"] else "an unknown stream"
    console.print(
        f"[bold]{escape(session.run)}[/bold]: {escape(meta['bundle'])} on {escape(source)}, began {meta['started']}; "
        f"{len(states)} decisions, {len(session.of('token'))} tokens"
    )
    worst, shown, began_s = 0.0, some(states, every_s), monotonic()
    for state in shown:
        while speed is not None and monotonic() < began_s + (state["signal_s"] - shown[0]["signal_s"]) / speed:
            if stop():
                break
            sleep(0.02)
        if stop():
            return worst
        looked = None if again is None else again.look(state)
        worst = max(worst, 0.0 if looked is None else looked.difference)
        console.print(_line(state, looked), markup=False)
    _show_why(session)
    if again is not None:
        verdict = "equal to the logged ones" if worst <= TOLERANCE else "NOT THE LOGGED ONES"
        console.print(f"probabilities of the {len(shown)} decisions, computed again: {verdict} (within {worst:.1e})")
    return worst


def some(states: list[Message], every_s: float | None) -> list[Message]:
    """Return the decisions that are shown: so many seconds apart, or some thirty of them."""
    if every_s is None:
        return states[:: max(1, -(-len(states) // ROWS))]
    shown: list[Message] = []
    for state in states:
        if not shown or not 0 <= state["signal_s"] - shown[-1]["signal_s"] < every_s - 1e-6:
            shown.append(state)
    return shown


def _line(state: Message, looked: Looked | None) -> str:
    shares = "  ".join(f"{name} {value:.3f}" for name, value in state["probabilities"].items())
    context = state["context"]
    text = f"{state['signal_s']:8.1f} s  {state['label']}  ({shares})  {context['tokens']} tokens, "
    text += f"{context['seconds']:.1f} s"
    if looked is not None:
        first, (share, usual) = next(iter(looked.by_state().items()))
        text += f"; looks at {first}: {share:.0%} ({usual:.0%} of tokens), last {NEWEST_S:g} s: "
        text += f"{looked.newest(NEWEST_S):.0%}"
    return text if state["trusted"] else f"{text}; NOT TRUSTED: {'; '.join(state['reasons'])}"


def _show_why(session: Session) -> None:
    n = len(session.of("state"))
    for reason, count in session.doubts().items():
        console.print(f"not trusted in {count} of {n} decisions: {reason}", markup=False)
    for at_s, what in session.changes():
        console.print(f"{at_s:8.1f} s  {what}", markup=False)


def show_decision(state: Message, looked: Looked | None) -> None:
    """Print one decision with the states and tokens that carried it."""
    console.print(_line(state, looked), markup=False)
    if looked is None:
        console.print("the log lacks tokens that it rested on")
        return
    console.print(f"on itself (what holds without any token): {looked.own:.1%} of the attention")
    states = table("state", "attention", "share of tokens")
    for name, (share, usual) in looked.by_state().items():
        states.add_row(name, f"{share:.1%}", f"{usual:.1%}")
    tokens = table("token", "from", "to", "attention")
    for row in looked.strongest(STRONGEST).tolist():
        start_s, end_s, weight = looked.start_s[row], looked.end_s[row], looked.weights[row]
        tokens.add_row(looked.names[row], f"{start_s:.3f} s", f"{end_s:.3f} s", f"{weight:.2%}")
    for each in (states, tokens):
        console.print(each)
    same = "equal to" if looked.difference <= TOLERANCE else "NOT"
    console.print(f"computed again, the probabilities are {same} the logged ones (within {looked.difference:.1e})")


def as_json(state: Message, looked: Looked | None) -> dict[str, Any]:
    """Return a decision and what it looked at as plain values."""
    known = {key: state[key] for key in ("signal_s", "label", "probabilities", "context", "trusted", "reasons")}
    if looked is None:
        return known
    attention = {
        "difference": looked.difference,
        "own": looked.own,
        "states": {name: share for name, (share, _) in looked.by_state().items()},
        "newest_10_s": looked.newest(NEWEST_S),
        "tokens": [
            [looked.names[row], float(looked.start_s[row]), float(looked.end_s[row]), float(looked.weights[row])]
            for row in looked.strongest(STRONGEST).tolist()
        ],
    }
    return known | {"attention": attention}
