"""How long should the context be? A longer one is surer, a shorter one follows a change of state sooner.

Trials of people whom a bundle has never met are joined to sessions in which the class changes, and decoded token by
token through the step graph, in rolling contexts of several lengths. It is tokens that are joined: at a seam, filters
and the running level begin anew, which live take a few seconds to settle.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np

from rtbrain.decoder.bundle import Bundle
from rtbrain.decoder.session import StepModel, load_step
from rtbrain.errors import ConfigError
from rtbrain.messages import BoolArray, FloatArray, IntArray
from rtbrain.progress import Progress
from rtbrain.tokens.context import RollingContext
from rtbrain.tokens.inputs import Inputs, Vocabulary
from rtbrain.training.batches import joined, pieces_of
from rtbrain.training.corpus import tokenise_corpus
from rtbrain.training.evaluate import Plan
from rtbrain.training.evaluate_store import described
from rtbrain.training.folds import groups
from rtbrain.training.metrics import Interval, numbered
from rtbrain.training.nuisance.score import accuracy_interval
from rtbrain.training.trials import Trial

LENGTHS_S = (10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
EVERY_S = 1.0
"""Answers are asked for on this grid of the session's time."""
IN_A_ROW = 3
"""So many answers with the new class, one after the other, count as having followed a change."""


@dataclass(frozen=True)
class ContextRow:
    """What a context length gives."""

    context_s: float
    at_end: float
    """Share of the trials whose last answer is right: what the length can do at best."""
    at_end_interval: Interval
    over_time: float
    """Share of all answers that are right, the first after ten seconds of the session."""
    delay_s: float | None
    """Median over the changes that were followed, from the change to the first of the answers in a row."""
    followed: int
    changes: int
    """Changes of state before which the answer was right; of these, how many it followed before the next one."""


@dataclass(frozen=True)
class ContextReport:
    """Accuracy and delay against the length of the context."""

    bundle: str
    sha256: str
    dataset: str
    task: str
    n_people: int
    n_sessions: int
    n_trials: int
    """In the sessions; trials of the same class as the one before are left out."""
    joined: str
    """Of what the sessions were made."""
    nuisance: str
    rows: tuple[ContextRow, ...]
    question: str = ""
    """What is asked, of which bundle; a bundle that was trained anew under the same name is another one."""


@dataclass(frozen=True)
class _Session:
    """Trials one after the other."""

    person: str
    labels: tuple[int, ...]
    edges_s: tuple[float, ...]
    """Where each trial begins, and where the last one ends."""
    inputs: Inputs
    new_contexts: frozenset[int] = frozenset()
    """Tokens before which the signal broke off for so long that live, too, a new context begins."""


def context_report(
    bundle: Bundle, planned: Plan, nuisance: str, cache: Path, workers: int | None, progress: Progress | None = None
) -> ContextReport:
    """Measure a bundle on the people of a data set that it has not met.

    Raises
    ------
    ConfigError
        The bundle tells other classes apart, or has met everybody.
    """
    classes = tuple(rule.name for rule in planned.config.tasks[planned.task].classes)
    if classes != bundle.classes:
        raise ConfigError(
            f"{bundle.name} tells {', '.join(bundle.classes)} apart, the task {planned.task} is about "
            f"{', '.join(classes)}; name the task that it was trained for"
        )
    trials = _unknown_to(bundle, planned)
    corpus = tokenise_corpus(trials, bundle.templates, cache, workers, progress)
    model = load_step(bundle.step, "cpu")
    person = groups(planned.chosen.trials, planned.same_person)
    rows, made_of = _orders(trials, person)
    schema = model.schema
    read = {each.name: pieces_of(corpus[each.name], Vocabulary(schema.states), schema.attributes) for each in trials}
    sessions = [_session(person[row[0].subject], row, [read[trial.name] for trial in row]) for row in rows]
    lengths = sorted({min(each, bundle.context_s) for each in (*LENGTHS_S, bundle.context_s)})
    found = []
    for number, length in enumerate(lengths, 1):
        found.append(_row(model, sessions, length))
        if progress is not None:
            progress(f"{len(lengths)} context lengths", number / len(lengths))
    n_people = len({person[trial.subject] for trial in trials})
    where = (bundle.name, bundle.sha256, planned.config.name, planned.task)
    counts = (n_people, len(sessions), sum(map(len, rows)))
    return ContextReport(*where, *counts, made_of, nuisance, tuple(found), _question(bundle, planned))


def _question(bundle: Bundle, planned: Plan) -> str:
    """Return what tells apart reports that share no file: methods, seeds and the set's own recipe play no part."""
    about = [bundle.sha256, asdict(planned.config.tasks[planned.task]), described(planned.config.crop)]
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def _unknown_to(bundle: Bundle, planned: Plan) -> list[Trial]:
    """Return the trials of people who were neither trained nor validated on."""
    about, trials = bundle.provenance, planned.chosen.trials
    met: set[str] = set()
    if about.get("dataset") == planned.config.name:
        met = {name for side in ("train", "validation") for name in about["subjects"][side]}
    elif "recordings" not in about:
        raise ConfigError(
            f"{bundle.name} was trained on {about.get('dataset')}, not {planned.config.name}, and does not say by "
            "content which recordings it has met: under another name they may be here, too; train it anew"
        )
    # Under whatever name a recording is read, its content tells.
    content = {each for side in ("train", "validation") for each in about.get("recordings", {}).get(side, ())}
    met |= {trial.subject for trial in trials if content.intersection(planned.content[trial.name])}
    # Somebody who was met may have no trial in this task, and yet be one person with somebody who has.
    met |= {name for names in planned.same_person if met & set(names) for name in names}
    person = groups(trials, planned.same_person)
    known = {person[name] for name in met if name in person}
    left = [trial for trial in trials if person[trial.subject] not in known]
    if len({trial.label for trial in left}) < 2:
        n_met, n_people = len(known & set(person.values())), len(set(person.values()))
        raise ConfigError(
            f"{bundle.name} has met {n_met} of the {n_people} people of {planned.config.name}, and those that are left "
            "do not have two classes; leave some out of the training by `rtbrain train --exclude`, or give other data. "
            "Where sets have the same name, so have people: if these are others, give the set another `name` in its "
            "configuration"
        )
    return left


def _orders(trials: Sequence[Trial], person: dict[str, str]) -> tuple[list[list[Trial]], str]:
    """Return trials in the order in which they are joined, so that the class changes as often as may be."""
    own: dict[str, list[Trial]] = {}
    for trial in trials:
        own.setdefault(person[trial.subject], []).append(trial)
    within = [_alternating(each) for each in own.values() if len({trial.label for trial in each}) > 1]
    if within:
        return within, "trials of one person each"
    # Nobody has two classes: what changes is the person, and with it all that is theirs.
    by_class: dict[int | None, list[Trial]] = {}
    for trial in trials:
        by_class.setdefault(trial.label, []).append(trial)
    pairs = [list(each) for each in zip(*by_class.values(), strict=False)]
    return [row[i:] + row[:i] for i, row in enumerate(pairs)], "trials of different people, as nobody has two classes"


def _alternating(trials: Sequence[Trial]) -> list[Trial]:
    """Take a trial of the class with most left, but never of the last one's class if there is another."""
    left: dict[int | None, list[Trial]] = {}
    for trial in sorted(trials, key=lambda trial: trial.name):
        left.setdefault(trial.label, []).append(trial)
    order: list[Trial] = []
    while any(left.values()):
        others = [label for label in left if left[label] and not (order and order[-1].label == label)]
        if not others:
            break  # only more of the same: no change would follow
        label = max(others, key=lambda each: len(left[each]))
        order.append(left[label].pop(0))
    return order


def _session(person: str, trials: Sequence[Trial], parts: Sequence[Sequence[Inputs]]) -> _Session:
    """Join the pieces of trials."""
    edges, moved, begin = [0.0], list[Inputs](), set[int]()
    for trial, pieces in zip(trials, parts, strict=True):
        if not pieces:
            raise ConfigError(
                f"trial {trial.name!r} has no token with a state; leave it out, or look at it by `rtbrain inspect`"
            )
        shift = edges[-1] - float(pieces[0].start_s.min())
        for number, piece in enumerate(pieces):
            if number:
                begin.add(sum(map(len, moved)))
            moved.append(replace(piece, start_s=piece.start_s + shift, end_s=piece.end_s + shift))
        edges.append(float(moved[-1].end_s.max()))
    labels = tuple(trial.label for trial in trials if trial.label is not None)
    return _Session(person, labels, tuple(edges), joined(moved), frozenset(begin))


def _row(model: StepModel, sessions: Sequence[_Session], context_s: float) -> ContextRow:
    last_right, people, right, delays, changes = [], [], [], list[float](), 0
    for session in sessions:
        times, told = _decoded(model, session, context_s)
        at = np.clip(np.searchsorted(session.edges_s, times, "left") - 1, 0, len(session.labels) - 1)
        correct = told == np.array(session.labels)[at]
        right.append(correct[times >= LENGTHS_S[0]])
        for number in range(len(session.labels)):
            own = np.flatnonzero(at == number)
            last_right.append(float(correct[own[-1]]) if len(own) else 0.0)
            people.append(session.person)
        for number, (before, new) in enumerate(pairwise(session.labels)):
            if not last_right[len(last_right) - len(session.labels) + number]:
                continue  # it did not know the old state, so that there was nothing to change
            assert before != new
            changes += 1
            delay = _followed(times[at == number + 1], correct[at == number + 1], session.edges_s[number + 1])
            delays += [] if delay is None else [delay]
    if not any(map(len, right)):
        raise ConfigError(
            f"no session of {len(sessions)} gives an answer after {LENGTHS_S[0]:g} s; the longest lasts "
            f"{max(session.edges_s[-1] for session in sessions):.3g} s: give more, or longer, trials"
        )
    shares = np.array(last_right)
    interval = accuracy_interval(shares, numbered(people)[0])
    over_time = float(np.concatenate(right).mean())
    middle = median(delays) if delays else None
    return ContextRow(context_s, float(shares.mean()), interval, over_time, middle, len(delays), changes)


def _followed(times: FloatArray, correct: BoolArray, change_s: float) -> float | None:
    """Return the seconds from a change to the first of some right answers in a row."""
    runs = np.convolve(correct, np.ones(IN_A_ROW), "valid") == IN_A_ROW if len(correct) >= IN_A_ROW else np.array([])
    return float(times[int(np.argmax(runs))] - change_s) if runs.any() else None


def _decoded(model: StepModel, session: _Session, context_s: float) -> tuple[FloatArray, IntArray]:
    """Return when answers were asked for, and the class that each named."""
    context = RollingContext(model.stream(), model.stream(), context_s)
    inputs, due = session.inputs, EVERY_S
    times, told = [], []
    for i in range(len(inputs)):
        end_s = float(inputs.end_s[i])
        while due < end_s:  # all tokens that had closed by then are in
            if (answer := context.answer()) is not None:
                times.append(due)
                told.append(int(np.argmax(answer.probabilities)))
            due += EVERY_S
        if i in session.new_contexts:
            context.reset()
        context.push(int(inputs.ids[i]), inputs.attributes[i], float(inputs.start_s[i]), end_s)
    return np.array(times), np.array(told, np.int64)
