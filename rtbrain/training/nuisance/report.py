"""An audit in words: one line to stand beside an accuracy, and a verdict."""

from rtbrain.training.nuisance.audit import ALL, Audit
from rtbrain.training.nuisance.features import EDGES, GROUPS, LINES
from rtbrain.training.nuisance.filters import FilterGroup
from rtbrain.training.nuisance.score import Score

_ADVICE = {
    "alarm": "raw accuracies on this set cannot be trusted",
    "notice": "what is not brain tells the class a little",
    "none": "no nuisance that tells the class was found",
}


def one_line(audit: Audit) -> str:
    """Return what must stand beside every accuracy on this task."""
    best = audit.best
    who = f"majority {audit.majority:.2f}, {audit.n_people} people"
    if best is None:
        return f"nuisance alone: nothing varies between recordings ({who})"
    what = f"{'all of it' if best.group == ALL else best.group} {best.accuracy:.2f} ({_range(best.accuracy_interval)})"
    # Few people may not show that filters tell the class, and yet a decoder can learn them.
    filters = f"; recordings came through {len(audit.filters.groups)} filters" if audit.filters.several else ""
    advice = _ADVICE[audit.finding]
    if audit.finding == "none":  # which is no clean bill where few people could not have shown it
        advice += f" (so many people show it from a balanced accuracy of {audit.noticeable:.2f} on)"
    return f"nuisance alone: {what}, {who}; {advice}{filters}"


def verdict(audit: Audit) -> str:
    """Return the result in words, a paragraph for each thing found."""
    paragraphs = [_opening(audit), _filters(audit), _lines(audit)]
    if audit.finding == "alarm":
        paragraphs.append(_cure(audit))
    return "\n".join(paragraph for paragraph in paragraphs if paragraph)


def _opening(audit: Audit) -> str:
    name = f"{audit.dataset}, task {audit.task}"
    told = [score for score in audit.counted if score.finding != "none" and score.group != ALL]
    told = sorted(told, key=lambda score: -score.balanced) or [s for s in audit.counted if s.finding != "none"]
    listed = "; ".join(_scored(score) for score in told)
    against = f"always saying the most frequent class gives {audit.majority:.2f}"
    limit = (
        f"With {audit.n_people} people a nuisance shows from a balanced accuracy of {audit.noticeable:.2f} on; "
        "a weaker one may be there."
    )
    if audit.finding == "alarm":
        return (
            f"{name}: raw accuracies on this set cannot be trusted. "
            f"What is not brain tells the class of unseen people: {listed}; {against}."
        )
    if audit.finding == "notice":
        return f"{name}: what is not brain tells the class a little: {listed}; {against}. Quote it beside accuracies."
    best = audit.best
    seen = f"the best is {_scored(best)}, {against}" if best else "it is the same in all recordings"
    return f"{name}: no nuisance was found that tells the class of unseen people: {seen}. {limit}"


def _scored(score: Score) -> str:
    meaning = GROUPS.get(score.group)
    what = f"{score.group} ({meaning})" if meaning else "all of it together" if score.group == ALL else score.group
    return f"{what} alone {score.accuracy:.2f} (95 % interval {_range(score.accuracy_interval)}, p {score.p:.3f})"


def _range(interval: tuple[float, float]) -> str:
    return f"{interval[0]:.2f} to {interval[1]:.2f}"


def _filters(audit: Audit) -> str:
    filters = audit.filters
    if not filters.several:
        return f"There is no evidence of more than one recording filter: {filters.lacking}."
    first, *others = filters.groups
    sizes = "; ".join(f"{group.name} has {_counted(audit.members[group.name], audit)}" for group in filters.groups)
    text = (
        f"The recordings came through {len(filters.groups)} filters (separation of the band edges "
        f"{filters.separation:.0f}): {sizes}. "
    )
    text += " ".join(_response(group, first) for group in others)
    if audit.rule_accuracy is not None and audit.rule_interval is not None:
        text += (
            f' The rule "filter, so class" alone is right in {audit.rule_accuracy:.2f} '
            f"({_range(audit.rule_interval)}) of the recordings."
        )
    return text


def _response(group: FilterGroup, first: FilterGroup) -> str:
    text = f"Relative to {first.name}, {group.name} is {_steps(group.response_db)}."
    both = [f"{name} {_steps(response, brief=True)}" for name, response in group.by_class_db.items()]
    return f"{text} Within one class: {'; '.join(both)}." if both else text


def _steps(response: dict[str, float], *, brief: bool = False) -> str:
    shown = {hz: db for hz, db in response.items() if not brief or hz in ("0.5 Hz", "1 Hz", "40 Hz", "45 Hz")}
    return ", ".join(f"{db:+.0f} dB at {hz}" for hz, db in shown.items())


def _counted(counts: tuple[int, ...], audit: Audit) -> str:
    each = [f"{n} of {all_} {name}" for n, all_, name in zip(counts, audit.n_trials, audit.classes, strict=True)]
    return " and ".join(each)


def _lines(audit: Audit) -> str:
    lines = audit.lines
    if not lines.names:
        return "No narrow line was found between 3 and 48 Hz."
    text = (
        f"Narrow lines, up to {lines.strongest_db:.0f} dB above the spectrum, are in "
        f"{_counted(lines.with_lines, audit)} recordings."
    )
    if lines.base_hz is not None:
        low, high = lines.base_hz
        where = f"{low:.1f} Hz" if f"{low:.1f}" == f"{high:.1f}" else f"{low:.1f} to {high:.1f} Hz"
        text += f" They repeat a line at {where} ({_counted(lines.with_comb, audit)})."
    if lines.mains:
        more = f" and {len(lines.mains) - 3} more" if len(lines.mains) > 3 else ""
        text += f" They lie where sampling puts mains harmonics: {'; '.join(lines.mains[:3])}{more}."
    alone = next((score for score in audit.scores if score.group == LINES), None)
    if alone is not None:
        sure = "" if alone.finding != "none" else ", which chance may give as well"
        text += f" Alone they tell the class in {alone.accuracy:.2f} ({_range(alone.accuracy_interval)}){sure}."
    return text


def _cure(audit: Audit) -> str:
    alarmed = [score.group for score in audit.counted if score.finding == "alarm"]
    if audit.harmonised:
        return (
            "This set's recipe harmonises recordings: quote accuracies made with it only, beside these numbers, and "
            "probe the decoder with the other group's filter and lines."
        )
    cure = "a `harmonise` block in the recipe (line canceller, band edges inside the narrowest filter) and one length"
    cure = cure if EDGES in alarmed or audit.lines.names else "recordings of all classes made in one way"
    return f"What helps: {cure}. Rank no decoders by accuracies on the recordings as they are."
