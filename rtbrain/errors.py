"""Everything rtbrain raises on purpose.

RtbrainError
├── ConfigError      a setting is unknown, missing or out of range
├── SourceError      a recording or stream cannot be read, is empty or is cut short
├── StreamError      a stream changed its rate or channels, or its time stamps make no sense
├── ChannelError     channel names are doubled, unknown, or too few of them are there
├── UnitError        the amplitude does not fit the declared unit
├── RateError        the sampling rate does not fit the recipe
├── TemplateError    a template folder is damaged or belongs to another montage
├── FitError         clustering cannot be done, or its best start did not converge
├── BundleError      a file of a trained model is damaged, or does not do what it says
├── ParityError      the live path gives something else than the offline path
├── LeakError        a split, or what was fitted before it, lets the test side be seen in training
├── SinkError        an output cannot be opened or written
└── SecurityError    an output would leave the machine unprotected, or a key is missing or damaged

A message says what was wrong, the value that was seen, and what to do next.
"""

from collections.abc import Iterable

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""
INTERRUPTED_SAID = "interrupted; nothing is left half written, and what was finished is kept"


def perhaps(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most like one that is not, as a part of a message; nothing if none is."""
    from difflib import get_close_matches  # here only: commands that make no mistake need not load it

    near = get_close_matches(name.lower(), by_lower := {each.lower(): each for each in known}, 1)
    return f", perhaps {by_lower[near[0]]!r} is meant" if near else ""


class RtbrainError(Exception):
    """Base of all errors that are the input's fault; the command line turns it into `exit_code`."""

    exit_code = 2


class ConfigError(RtbrainError):
    """A setting is unknown, missing or out of range."""


class SourceError(RtbrainError):
    """A recording or stream cannot be read, is empty or is cut short."""


class StreamError(RtbrainError):
    """A stream changed its rate or channels, or its time stamps make no sense."""


class ChannelError(RtbrainError):
    """Channel names are doubled, unknown, or too few of them are there."""


class UnitError(RtbrainError):
    """The amplitude does not fit the declared unit."""


class RateError(RtbrainError):
    """The sampling rate does not fit the recipe."""


class TemplateError(RtbrainError):
    """A template folder is damaged or belongs to another montage."""


class FitError(RtbrainError):
    """Clustering cannot be done, or its best start did not converge."""


class LeakError(RtbrainError):
    """A split, or what was fitted before it, lets the test side be seen in training."""


class SinkError(RtbrainError):
    """An output cannot be opened or written."""


class SecurityError(RtbrainError):
    """An output would leave the machine unprotected, or a key is missing or damaged."""


class BundleError(RtbrainError):
    """A file of a trained model is damaged, or does not do what it says."""


class ParityError(RtbrainError):
    """The live path gives something else than the offline path."""
