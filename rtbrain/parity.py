"""The certificate of a bundle: on a recording, the live path gave what the offline path gives.

Live, the recording goes over real LSL in random chunks through the source and the decoder of `rtbrain stream`, which
run `step.onnx`. Offline, the whole recording goes through the chain, and `decoder.onnx` answers to the tokens behind
each decision. Both use the bundle's own files: the certificate tells that they agree, not that they are right.
"""

import hashlib
import json
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import zip_longest
from pathlib import Path
from typing import Final

import numpy as np
import pylsl

from rtbrain import __version__
from rtbrain.decoder.bundle import PARITY, Bundle, load_bundle
from rtbrain.decoder.session import Device
from rtbrain.errors import ParityError, SourceError
from rtbrain.messages import Break, Token, Tokens
from rtbrain.parity_paths import LivePath, OfflinePath, live_path
from rtbrain.progress import Progress
from rtbrain.sources.chunking import Source
from rtbrain.sources.recording import between, open_recording
from rtbrain.writing import replacing

FORMAT: Final = 1
TOLERANCE: Final = 1e-4
"""Largest difference of a probability."""
ATTRIBUTE_TOLERANCE: Final = 1e-6
"""Largest relative difference of a token's attribute; of one below LEAST_ATTRIBUTE, relative to that."""
LEAST_ATTRIBUTE: Final = 1e-3
MOST_COMPARED: Final = 100
"""Decisions whose answer is computed anew, evenly spread: each one costs a pass over up to all tokens."""

_EXACT = ("band", "state", "start", "duration")
_NEAR = ("gfp", "gfp_rel", "corr", "quality", "power", "explained")
_PACKAGES = ("numpy", "scipy", "pylsl", "onnxruntime-gpu", "onnxruntime")


@dataclass(frozen=True)
class Certificate:
    """What `parity.json` says."""

    bundle: str
    bundle_sha256: str
    """The bundle's identity; the certificate holds for no other."""
    passed: bool
    """Always true: what failed gets no certificate."""
    file: str
    file_sha256: str
    samples_sha256: str
    """Of the numbers that were read, for formats with more than one file."""
    seconds: tuple[float, float]
    """First and last second of the recording that were used."""
    rate_hz: float
    channels: int
    chunks: int
    """Random ones, in which the samples were sent."""
    chunk_samples: tuple[int, int]
    """The smallest and the largest."""
    seed: int
    breaks: int
    """In the recording; both paths found the same."""
    tokens: int
    """Each one was compared: band, state, start and duration are identical."""
    largest_attribute_difference: float
    decisions: int
    decisions_compared: int
    largest_probability_difference: float
    tolerance: float
    versions: dict[str, str]
    made: str
    format: int = FORMAT


def certify(
    bundle: Bundle,
    file: Path,
    *,
    start_s: float = 0.0,
    stop_s: float | None = None,
    unit: str | None = None,
    stream: str | None = None,
    source: Source | None = None,
    seed: int = 0,
    device: Device = "auto",
    progress: Progress = lambda what, share: None,
) -> Certificate:
    """Compare both paths on a recording and write the certificate beside the bundle.

    Parameters
    ----------
    bundle : Bundle
        What `load_bundle` gave.
    file : Path
        A recording that fits the bundle.
    start_s, stop_s : float
        Part of it.
    unit, stream : str, optional
        As for `open_recording`.
    source : Source, optional
        What is read of a file that only a data set's reader can open.
    seed : int
        Of the random chunks.
    device : {"auto", "cpu", "cuda"}
        Where the live path runs.
    progress : callable
        Is told what is being done and the share done.

    Raises
    ------
    ParityError
        The paths differ. No certificate is written, and one that is there is removed: it is not true any more.
    RtbrainError
        The recording cannot be read or does not fit the bundle; the folder stays as it is.
    """
    if source is None:
        source = open_recording(file, unit=unit, stream=stream)
    source = between(source, start_s, stop_s)
    live = live_path(bundle, source, seed, device, partial(progress, "live path, over LSL"))
    # Read and verified anew: what the live path has in memory must be what lies on the disk.
    offline = OfflinePath.of(load_bundle(bundle.folder), source, partial(progress, "offline path"))
    target = bundle.folder / PARITY
    try:
        attributes, answers = compare(bundle, live, offline, partial(progress, "answers"))
    except ParityError as error:
        target.unlink(missing_ok=True)
        raise ParityError(
            f"{file.name} through the bundle {bundle.name}: {error}; no certificate was written, and one that was "
            "there is removed. Do not decode live with it: restore the bundle, or report this with the recording"
        ) from error
    certificate = Certificate(
        bundle=bundle.name,
        bundle_sha256=bundle.sha256,
        passed=True,
        file=file.name,
        file_sha256=_sha256(file),
        samples_sha256=_samples_sha256(source),
        seconds=(start_s, start_s + source.duration_s),
        rate_hz=source.info.rate_hz,
        channels=len(source.info.channels),
        chunks=len(live.chunks),
        chunk_samples=(min(live.chunks), max(live.chunks)),
        seed=seed,
        breaks=len(live.breaks),
        tokens=len(live.tokens),
        largest_attribute_difference=attributes,
        decisions=len(live.decisions),
        decisions_compared=len(_spread(len(live.decisions))),
        largest_probability_difference=answers,
        tolerance=TOLERANCE,
        versions=_versions(),
        made=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    with replacing(target) as temporary:
        temporary.write_text(json.dumps(asdict(certificate), indent=2, allow_nan=False) + "\n", encoding="utf-8")
    return certificate


def compare(
    bundle: Bundle, live: LivePath, offline: OfflinePath, progress: Callable[[float], None] = lambda share: None
) -> tuple[float, float]:
    """Return the largest difference of an attribute (relative) and of a probability.

    Raises
    ------
    ParityError
        A token, a break or a probability differs by more than is allowed.
    SourceError
        There is nothing to compare.
    """
    if not live.decisions or not len(offline.tokens):
        raise SourceError("the recording is too short for a decision: give more of it, ten seconds beyond the warm-up")
    _compare_breaks(live.breaks, offline.breaks)
    attributes = _compare_tokens(bundle, live.tokens, offline.tokens)
    largest, rows = 0.0, _spread(len(live.decisions))
    for done, row in enumerate(rows, 1):
        decision, labelled = live.decisions[row]
        found = np.array([decision.probabilities[name] for name in bundle.classes])
        wanted = offline.probabilities(labelled, decision.context.tokens)
        difference = float(np.abs(found - wanted).max())
        if not difference <= TOLERANCE:
            raise ParityError(
                f"at {decision.signal_s:.2f} s probabilities are {np.round(found, 5).tolist()} live and "
                f"{np.round(wanted, 5).tolist()} offline, {difference:.2g} apart, more than {TOLERANCE:g}"
            )
        largest = max(largest, difference)
        progress(done / len(rows))
    return attributes, largest


def _compare_breaks(live: list[Break], offline: list[Break]) -> None:
    for number, (found, wanted) in enumerate(zip_longest(live, offline)):
        sides = [None if each is None else (each.kind, each.at, each.missing) for each in (found, wanted)]
        if sides[0] != sides[1]:
            raise ParityError(f"break {number + 1} is {found or 'not there'} live and {wanted or 'not there'} offline")


def _compare_tokens(bundle: Bundle, live: Tokens, offline: Tokens) -> float:
    n = min(len(live), len(offline))
    same = np.logical_and.reduce([getattr(live, name)[:n] == getattr(offline, name)[:n] for name in _EXACT])
    if len(live) != len(offline) or not same.all():
        agreed = int(same.sum())
        first = int(np.argmin(np.append(same, False)))
        raise ParityError(
            f"{agreed} of {max(len(live), len(offline))} tokens agree ({len(live)} live, {len(offline)} offline); the "
            f"first that differs is token {first + 1}: {_told(bundle, live, first)} live, "
            f"{_told(bundle, offline, first)} offline"
        )
    pairs = [(getattr(live, name), getattr(offline, name)) for name in _NEAR]
    relative = [np.abs(a - b) / np.maximum(np.abs(b), LEAST_ATTRIBUTE) for a, b in pairs]
    largest = float(np.max(relative))
    if not largest <= ATTRIBUTE_TOLERANCE:
        name = _NEAR[int(np.argmax([each.max() for each in relative]))]
        raise ParityError(f"the {name} of a token differs by {largest:.2g}, more than {ATTRIBUTE_TOLERANCE:g}")
    return largest


def _told(bundle: Bundle, tokens: Tokens, row: int) -> str:
    if row >= len(tokens):
        return "none"
    token: Token = next(iter(tokens.take(slice(row, row + 1))))
    return (
        f"{bundle.recipe.bands[token.band].name} state {token.state} from sample {token.start} on for {token.duration}"
    )


def _spread(n: int) -> list[int]:
    """Return the numbers of the decisions that are compared, the first and the last among them."""
    return sorted({round(each) for each in np.linspace(0, n - 1, min(n, MOST_COMPARED)).tolist()})


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _samples_sha256(source: Source) -> str:
    digest = hashlib.sha256()
    for chunk in source.chunks():
        digest.update(chunk.data.tobytes())
    return digest.hexdigest()


def _versions() -> dict[str, str]:
    found = {"rtbrain": __version__, "python": platform.python_version(), "liblsl": str(pylsl.library_version())}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # one of the two builds of ONNX Runtime is not there
            continue
    return found | {"platform": f"{platform.system()} {platform.machine()}"}
