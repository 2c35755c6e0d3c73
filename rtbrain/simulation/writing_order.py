"""What a simulated set is to be: how much of it, who gets a planted confound, and the configuration that reads it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from rtbrain.config import Count, NotNegative, Positive, Share, load_yaml
from rtbrain.errors import ConfigError, perhaps
from rtbrain.simulation.layouts import LAYOUTS
from rtbrain.simulation.layouts.plan import File, Layout, Scale, Take
from rtbrain.simulation.seeding import generator
from rtbrain.training.dataset_config import CONFIGS

Plant = Literal["filter", "lines"]


@dataclass(frozen=True)
class Order:
    """What to simulate; None is the layout's default."""

    dataset: str
    subjects: Count | None = None
    minutes: Positive | None = None
    """Per trial."""
    trials: Count | None = None
    """Per person."""
    form: str | None = None
    sessions: Count = 1
    """Per person."""
    seed: int = 0
    effect: NotNegative = 1.0
    """Factor on all that labels do; 0 for nothing."""
    plant: Plant | None = None
    """Something that is not brain and tells the label, to try audits on."""
    share: Share = 0.9
    """Share of the last class's recordings that get the plant, and of the first class's that do not."""
    shortened_s: Count | None = None
    """Length of trials instead of the one that a format fixes; for tests, as no such recordings exist."""

    @property
    def layout(self) -> Layout:
        """How the set lies on disk."""
        if self.dataset not in LAYOUTS:
            raise ConfigError(f"{self.dataset!r} cannot be simulated; these can: {', '.join(LAYOUTS)}")
        return LAYOUTS[self.dataset]


def scaled(order: Order) -> tuple[Scale, list[str]]:
    """Fill in the defaults and refuse what the layout does not have; return the scale and notes for the user."""
    layout, notes = order.layout, list[str]()
    form = order.form or layout.forms[0]
    if form not in layout.forms:
        raise ConfigError(
            f"{order.dataset} has no form {form!r}{perhaps(form, layout.forms)}; it has {', '.join(layout.forms)}"
        )
    if order.trials is not None and (layout.trials is None or order.trials > (layout.most_trials or 0)):
        most = f"at most {layout.most_trials} trials per person" if layout.trials else "its own number of recordings"
        raise ConfigError(f"{order.dataset} has {most}; change or leave out --trials {order.trials}")
    if order.sessions > layout.most_sessions:
        raise ConfigError(f"{order.dataset} has {layout.most_sessions} session(s) per person, not {order.sessions}")
    if order.minutes is not None and layout.minutes is None:
        notes.append(f"--minutes is ignored: the format of {order.dataset} fixes the length of its trials")
    seconds = order.shortened_s
    if layout.minutes is not None:
        seconds = round(60 * (order.minutes or layout.minutes))
        if seconds < 1:
            raise ConfigError(f"--minutes {order.minutes:g} is less than a second; trials last whole seconds")
    subjects, trials = order.subjects or layout.subjects, order.trials or layout.trials or 1
    return Scale(subjects, trials, form, order.seed, seconds, order.sessions), notes


def planted(files: Sequence[File], order: Order) -> list[File]:
    """Return the files with the confound given to the order's share of each class; classes between are in between."""
    if order.plant is None:
        return list(files)
    by_class: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for take in (take for file in files for take in file.takes):
        if len(take.labels) != 1:
            raise ConfigError(
                f"a recording of {order.dataset} ({files[0].path}) holds trials of several classes, so it can get no "
                "confound that tells the class; plant in another set or --form"
            )
        unit = _unit(take, order.layout)
        if unit not in by_class[min(take.labels)]:
            by_class[min(take.labels)].append(unit)
    rng, chosen = generator(order.seed, "plant"), set[tuple[int, int]]()
    for label, units in sorted(by_class.items()):
        share = np.interp(label, (0, order.layout.n_classes - 1), (1 - order.share, order.share))
        chosen.update(units[i] for i in rng.permutation(len(units))[: round(share * len(units))])
    return [
        replace(file, takes=tuple(replace(take, planted=_unit(take, order.layout) in chosen) for take in file.takes))
        for file in files
    ]


def _unit(take: Take, layout: Layout) -> tuple[int, int]:
    """Return what gets the plant as a whole: a person where labels belong to people, else a take."""
    return take.subject, 0 if layout.labels == "subject" else take.number


def configured(order: Order, scale: Scale, files: Sequence[File]) -> tuple[dict[str, Any], list[str]]:
    """Return the set's shipped configuration as it fits what is written, and notes on what had to change."""
    raw, notes = load_yaml(CONFIGS / f"{order.dataset}.yaml"), list[str]()
    raw["title"] = f"{raw['title']} (simulated)"
    raw["obtain"] = f"rtbrain simulate --dataset {order.dataset}"
    raw["root"] = "."
    people = {file.person for file in files}
    raw["same_person"] = [group for group in raw.get("same_person", ()) if people.issuperset(group)]
    shortest = min(each.seconds for file in files for take in file.takes for each in take.stretches if each.trial)
    crop = raw["crop"]
    if crop["start_s"] + crop["seconds"] > shortest:
        start = crop["start_s"] if crop["start_s"] <= shortest / 10 else 0
        raw["crop"] = {"start_s": start, "seconds": shortest - start}
        notes.append(f"trials of {shortest:g} s are shorter than the crop of the shipped configuration")
    if raw["protocol"]["split"] == "k-fold" and raw["protocol"]["folds"] > scale.subjects:
        raw["protocol"]["folds"] = max(2, scale.subjects // 2)
        notes.append(f"the folds of the shipped configuration need more people than {scale.subjects}")
    if scale.form != order.layout.forms[0] and "form" in raw.get("options", {}):
        raw["options"]["form"] = scale.form
        # Nothing else is left in these files; see the reader.
        raw["recipe"]["bands"] = [{"name": "broad", "low_hz": 4.0, "high_hz": 40.0}]
        notes.append(f"the shipped configuration reads another form than {scale.form}")
    return raw, notes
