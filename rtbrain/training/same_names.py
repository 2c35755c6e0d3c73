"""Names under `same_person` that nobody in the set has: they would keep nobody together, unnoticed."""

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches


def misspelt(same_person: Iterable[Sequence[str]], subjects: Collection[str]) -> tuple[list[str], list[str]]:
    """Return warnings of names that are wrong, and notes of those that are right but have no recording here.

    A name is wrong if it is another spelling of a subject's (`sub-1` of `sub-01`) or is not built as any of them.
    """
    spellings = {_plain(subject): subject for subject in subjects}
    shapes = {re.sub(r"\d+", "0", subject) for subject in subjects}
    warnings, notes = [], []
    for name in sorted({name for group in same_person for name in group} - set(subjects)):
        right = spellings.get(_plain(name))
        if right is None and re.sub(r"\d+", "0", name) in shapes:
            notes.append(f"same_person names {name!r}, of whom there is no recording here")
            continue
        near = [right] if right else get_close_matches(name, subjects, n=1, cutoff=0)
        hint = f"is it {near[0]!r}? " if near else ""
        warnings.append(
            f"same_person names {name!r}, but no subject is called so: {hint}Correct it in the configuration"
        )
    return warnings, notes


def _plain(name: str) -> str:
    """Return a name without case, blanks, signs and leading zeros."""
    return re.sub(r"(?<!\d)0+(?=\d)", "", re.sub(r"[\W_]", "", name.casefold()))
