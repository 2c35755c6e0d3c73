"""What an evaluation found, method by method, and its files: JSON with everything, TSV with the main figures."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from rtbrain import __version__
from rtbrain.errors import SourceError
from rtbrain.training.check_errors import left_out
from rtbrain.training.evaluate import Plan
from rtbrain.training.evaluate_cluster import installed
from rtbrain.training.evaluate_store import Answers
from rtbrain.training.methods import METHODS, REFERENCES
from rtbrain.training.methods.base import Attention
from rtbrain.training.metrics import Answered, Difference, Interval, Scores, compare, numbered, score
from rtbrain.training.nuisance import Audit, one_line
from rtbrain.training.paper_figures import OWN_MODELS, paper_ablation, paper_accuracy
from rtbrain.training.table_files import stem_in, write_table

OPTIMISTIC = "OPTIMISTIC (protocol paper: test people are in the templates, and choose the epoch of networks)"
SAME_PEOPLE = "SAME PEOPLE (only the stimuli are new: the people tested are among those learnt from)"
CONFOUNDED = "CONFOUNDED (not harmonised, and what is not brain tells the class)"
LABELS = (OPTIMISTIC, SAME_PEOPLE, CONFOUNDED)
"""Stand wherever such figures are printed."""

WHOLE = "whole"
"""What a model without one of its parts is compared with."""
COMPARED = (*REFERENCES, WHOLE)


@dataclass(frozen=True)
class Row:
    """One method."""

    method: str
    scores: Scores
    against: dict[str, Difference]
    """Differences to the reference methods, by their names, and of a model without a part to the `whole` one."""
    over_time: dict[str, tuple[float, Interval]]
    """Accuracy by the seconds of EEG seen, or `all`."""
    by_fold: dict[str, float]
    """Accuracy in each fold of each seed."""
    n_seeds: int = 1
    probes: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By what was exchanged (`filters`, `lines`): answers that flipped, and answers asked for; first seed only."""
    not_probed: tuple[str, ...] = ()
    """What could not be exchanged in some folds, in how many, and why."""
    epochs_kept: tuple[int, ...] = ()
    """The epoch that validation people chose in each fold of each seed, where there was one; 0 is the head start."""

    @property
    def kept(self) -> str:
        """Return the epochs in words; nothing for a method without."""
        if not self.epochs_kept:
            return ""
        told = f"{np.median(self.epochs_kept):g} ({min(self.epochs_kept)} to {max(self.epochs_kept)})"
        starts = self.epochs_kept.count(0)
        return f"{told}, the start in {starts} of {len(self.epochs_kept)}" if starts else told


@dataclass(frozen=True)
class Look:
    """Where a method looked during one test trial, and what it then said."""

    method: str
    said: str
    attention: Attention


@dataclass(frozen=True)
class Evaluation:
    """The table, and what must stand beside it."""

    dataset: str
    task: str
    classes: tuple[str, ...]
    protocol: str
    adaptation: str
    """Of all methods in the table but the yardsticks; see `rtbrain.training.methods.table_mode`."""
    label: str
    """Empty, or why the figures flatter."""
    kind: str
    """How recordings were taken: `harmonised`, `as recorded`, or `raw`: without the harmonising that they need."""
    n_people: int
    n_trials: int
    seeds: tuple[int, ...]
    n_folds: int
    warmup_s: float
    nuisance: str
    rows: tuple[Row, ...]
    looks: tuple[Look, ...] = ()
    """Of the methods that have attention, one each."""
    title: str = ""
    """Of the data set; that of a simulated one says so."""
    question: str = ""
    """See `Plan.question`."""
    settings: dict[str, Any] = field(default_factory=dict)
    """What was asked, in plain values: crop, folds, schedule, recipe, and who counts as one person."""
    left_out: tuple[str, ...] = ()
    """Recordings that could not be used, and why."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {"rtbrain": __version__, "installed": installed(), **asdict(self)}


def tabulate(planned: Plan, answers: Sequence[Answers], beside: Audit) -> Evaluation:
    """Put all answers together."""
    answered = {method.name: _answered(answers, method.name, "all") for method in planned.methods}
    rows = []
    for name, own in answered.items():
        against = {ref: _compared(own, answered[ref]) for ref in REFERENCES if ref in answered and ref != name}
        whole = next((each for each in answered if name not in METHODS and name.startswith(f"{each}-")), None)
        if whole is not None:
            against[WHOLE] = _compared(own, answered[whole])
        over_time = {}
        for seconds in (*(f"{each:g}" for each in planned.seconds), "all"):
            at = score(_answered(answers, name, seconds))
            over_time[seconds] = at.accuracy, at.accuracy_interval
        n_seeds = len(own.probabilities)
        asked = _flips(answers, name), _not_probed(answers, name)
        kept = tuple(int(each.facts["epoch"]) for each in answers if each.method == name and "epoch" in each.facts)
        rows.append(Row(name, score(own), against, over_time, _by_fold(answers, name), n_seeds, *asked, kept))
    first = next(iter(answered.values()))
    harmonised = planned.recipe.harmonise is not None
    labels = [OPTIMISTIC] if planned.optimistic else []
    if planned.config.protocol.split == "leave-one-stimulus-out":
        labels.append(SAME_PEOPLE)
    if beside.finding == "alarm" and not harmonised:
        labels.append(CONFOUNDED)
    classes = tuple(rule.name for rule in planned.config.tasks[planned.task].classes)
    return Evaluation(
        dataset=planned.config.name,
        task=planned.task,
        classes=classes,
        protocol="paper" if planned.optimistic else "strict",
        adaptation=planned.adaptation,
        label="; ".join(labels),
        kind="harmonised" if harmonised else "raw" if planned.raw else "as recorded",
        n_people=len(first.names),
        n_trials=len(first.trials),
        seeds=tuple(sorted({each.seed for each in answers})),
        n_folds=len({each.fold for each in answers}),
        warmup_s=planned.recipe.warmup_ms / 1000,
        nuisance=one_line(beside),
        rows=tuple(rows),
        looks=_looks(answers, classes),
        title=planned.config.title,
        question=planned.question,
        settings=_settings(planned),
        left_out=tuple(left_out(planned.config, planned.chosen)),
    )


def _settings(planned: Plan) -> dict[str, Any]:
    config = planned.config
    asked = {"protocol": config.protocol, "crop": config.crop, "training": config.training}
    return {
        **{name: None if value is None else asdict(value) for name, value in asked.items()},
        "n_states": config.n_states,
        "same_person": planned.same_person,
        "recipe": planned.recipe.to_dict(),
    }


def _looks(answers: Sequence[Answers], classes: Sequence[str]) -> tuple[Look, ...]:
    """Return an example of every method that has one, of its first fold."""
    found: dict[str, Look] = {}
    for each in answers:
        if each.attention is not None and each.method not in found:
            told = each.probabilities["all"][0]
            best = int(np.argmax(told))
            said = f"said {classes[best]} ({told[best]:.2f}), true {classes[each.labels[0]]}"
            found[each.method] = Look(each.method, said, each.attention)
    return tuple(found.values())


def _answered(answers: Sequence[Answers], method: str, seconds: str) -> Answered:
    """Bring a method's answers of all folds and seeds into one order."""
    told: dict[int, dict[str, tuple[float, ...]]] = defaultdict(dict)
    known: dict[str, tuple[int, str]] = {}
    for each in answers:
        if each.method != method:
            continue
        known |= dict(zip(each.trials, zip(each.labels, each.people, strict=True), strict=True))
        told[each.seed] |= dict(zip(each.trials, each.probabilities[seconds], strict=True))
    trials = tuple(sorted(known))
    if any(set(own) != set(trials) for own in told.values()):
        raise SourceError(f"{method}: not every trial was tested with every seed; remove its answers and run it again")
    people, names = numbered([known[name][1] for name in trials])
    probabilities = np.array([[told[seed][name] for name in trials] for seed in sorted(told)])
    return Answered(trials, np.array([known[name][0] for name in trials]), people, names, probabilities)


def _by_fold(answers: Sequence[Answers], method: str) -> dict[str, float]:
    found = {}
    for each in answers:
        if each.method == method:
            told = np.argmax(each.probabilities["all"], axis=1)
            found[f"seed {each.seed}, {each.fold}"] = float(np.mean(told == np.array(each.labels)))
    return found


def _compared(one: Answered, other: Answered) -> Difference:
    """Compare on the seeds that both were run with, which are the first ones."""
    n = min(len(one.probabilities), len(other.probabilities))
    return compare(
        replace(one, probabilities=one.probabilities[:n]), replace(other, probabilities=other.probabilities[:n])
    )


def _flips(answers: Sequence[Answers], method: str) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for probe in (probe for each in answers if each.method == method for probe in each.probes):
        kind = "lines" if probe.what.startswith("lines") else "filters"
        flips, asked = found.get(kind, (0, 0))
        found[kind] = flips + probe.flips, asked + len(probe.trials)
    return found


def _not_probed(answers: Sequence[Answers], method: str) -> tuple[str, ...]:
    lacking: dict[str, list[str]] = {}
    for each in answers:
        if each.method == method:
            for kind, why in each.not_probed.items():
                lacking.setdefault(kind, []).append(f"{each.fold}: {why}")
    return tuple(
        f"{kind} not exchanged in {len(why)} fold{'s' * (len(why) > 1)} ({why[0]})" for kind, why in lacking.items()
    )


def compared_with(found: Evaluation) -> list[str]:
    """Return what rows of a table are compared with."""
    return [name for name in COMPARED if any(name in row.against for row in found.rows)]


def paper_figure(found: Evaluation, method: str) -> float | None:
    """Return the paper's accuracy of a method, or of its own model without one of its parts, between 0 and 1.

    The paper's model adapts to the tested people: one that does not stands beside the paper's own without adaptation,
    and of one that adapts in another way, or lacks another part as well, the paper has none.
    """
    model, part = next(((own, method[len(own) + 1 :]) for own in OWN_MODELS if method.startswith(own)), ("", ""))
    if model and found.adaptation == "inductive":
        percent = None
    elif part:
        percent = paper_ablation(found.dataset, found.task, part) if found.adaptation == "transductive" else None
    elif model and found.adaptation == "none":
        percent = paper_ablation(found.dataset, found.task, "no-adaptation")
    else:
        percent = paper_accuracy(found.dataset, found.task, method)
    return None if percent is None else percent / 100


def evaluation_stem(found: Evaluation, folder: Path) -> str:
    """Return what the files of an evaluation are called in a folder, without their endings."""
    kind = found.kind.replace(" ", "-")
    mode = "" if found.adaptation == "none" else f"-{found.adaptation}"
    parts = "-ablations" if any(row.method not in METHODS for row in found.rows) else ""
    return stem_in(folder, f"{found.dataset}-{found.task}-{kind}-{found.protocol}{mode}{parts}", found.question)


def write_evaluation(found: Evaluation, folder: Path) -> tuple[Path, Path]:
    """Write the JSON and the TSV file of an evaluation; return their paths."""
    return write_table(folder, evaluation_stem(found, folder), found.to_dict(), _tsv(found))


def _tsv(found: Evaluation) -> str:
    lengths = list(found.rows[0].over_time)
    header = ["method", "accuracy", "low", "high", "balanced", "balanced_low", "balanced_high", "auc", "calibration"]
    for reference in COMPARED:
        header += [f"to_{reference}", f"to_{reference}_low", f"to_{reference}_high", f"to_{reference}_p"]
    header += [f"accuracy_{seconds}_s" if seconds != "all" else "accuracy_all" for seconds in lengths]
    said = ["recordings", "protocol", "adaptation", "label", "nuisance"]
    lines = ["\t".join([*header, "seeds", "flips_filters", "flips_lines", "epochs_kept", *said])]
    for row in found.rows:
        own = row.scores
        numbers = [own.accuracy, *own.accuracy_interval, own.balanced, *own.balanced_interval]
        numbers += [own.auc, own.calibration_error]
        cells = [f"{number:.4f}" for number in numbers]
        for reference in COMPARED:
            gap = row.against.get(reference)
            cells += ["n/a"] * 4 if gap is None else [f"{x:.4f}" for x in (gap.accuracy, *gap.interval, gap.p)]
        cells += [f"{row.over_time[seconds][0]:.4f}" for seconds in lengths]
        flips = [row.probes.get(kind) for kind in ("filters", "lines")]
        cells += [str(row.n_seeds), *("n/a" if each is None else f"{each[0] / each[1]:.4f}" for each in flips)]
        cells.append(",".join(map(str, row.epochs_kept)) or "n/a")
        beside = [found.kind, found.protocol, found.adaptation, found.label, found.nuisance]
        lines.append("\t".join([row.method, *cells, *beside]))
    return "\n".join(lines) + "\n"
