"""Recordings that are in a data set twice: which one is used, and who therefore is one person."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from rtbrain.training.datasets.identical import identical
from rtbrain.training.trials import Found, Problem, Trial


def without_copies(found: Found, labels: Collection[str]) -> Found:
    """Use each recording once, and join the subjects who share one.

    Of byte-identical files the first is used, unless they stand for different values of a label: then nobody can tell
    which is right and none is used. Only files that could be read count: ten copies of an error page are no person.
    A trial's name may occur once, too; files that claim a name that is taken are left out and reported.

    Parameters
    ----------
    found : Found
        What a reader found, copies included.
    labels : collection of str
        Fields that a label is made of.
    """
    of_file: dict[Path, list[Trial]] = defaultdict(list)
    for trial in found.trials:
        of_file[trial.files[0]].append(trial)
    dropped: set[Path] = set()
    problems, same_person = list(found.problems), list(found.same_person)
    for copies in identical(of_file):
        first, *others = copies
        people = tuple(dict.fromkeys(trial.subject for path in copies for trial in of_file[path]))
        joined = f"; {', '.join(people)} are kept on one side of every split" if len(people) > 1 else ""
        if len(people) > 1:
            same_person.append(people)
        if _contradicting([of_file[path] for path in copies], labels):
            dropped.update(copies)
            problems += [
                Problem(
                    str(path),
                    f"is the same recording as {_names(copies, path)}, byte for byte, under another label; nobody can "
                    f"tell which is right: none is used, remove the wrong ones{joined}",
                )
                for path in copies
            ]
            continue
        dropped.update(others)
        problems += [
            Problem(
                str(path),
                f"is the same recording as {_names([first], path)}, byte for byte; only that one is used: "
                f"remove the copy{joined}",
            )
            for path in others
        ]
    owner: dict[str, Path] = {}
    for path in (path for path in of_file if path not in dropped):
        taken = next((trial.name for trial in of_file[path] if trial.name in owner), None)
        if taken is None and len({trial.name for trial in of_file[path]}) == len(of_file[path]):
            owner.update({trial.name: path for trial in of_file[path]})
            continue
        dropped.add(path)
        other = f"as {_names([owner[taken]], path)} does, but differs from it" if taken else "in two of its own trials"
        what = f"claims to be {taken or of_file[path][0].name}, {other}; remove the wrong one, or rename it"
        problems.append(Problem(str(path), what))
    kept = tuple(trial for trial in found.trials if trial.files[0] not in dropped)
    return replace(found, trials=kept, problems=tuple(problems), same_person=tuple(same_person))


def _contradicting(copies: list[list[Trial]], labels: Collection[str]) -> bool:
    """Tell whether the trials of copies, compared in their order, are labelled differently."""
    if len({len(trials) for trials in copies}) > 1:
        return True
    return any(
        len({trial.fields[name] for trial in same if name in trial.fields}) > 1
        for same in zip(*copies, strict=True)
        for name in labels
    )


def _names(paths: list[Path], seen_from: Path) -> str:
    """Name files shortly: with their folder only where it makes the difference."""
    others = (path for path in paths if path != seen_from)
    return ", ".join(f"{p.parent.name}/{p.name}" if p.name == seen_from.name else p.name for p in others)
