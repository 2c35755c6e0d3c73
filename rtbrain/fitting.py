"""Templates from recordings: pool GFP peaks by the same chain that runs live, cluster them, describe the result."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rtbrain import __version__
from rtbrain.conditioning.channels import canonical_channels, is_scalp
from rtbrain.conditioning.quality import Quality
from rtbrain.errors import ChannelError, FitError, RtbrainError
from rtbrain.messages import Break, FloatArray
from rtbrain.microstates.fit import Fit, FitSettings, fit
from rtbrain.microstates.gfp import PeakFinder, global_field_power
from rtbrain.microstates.selection import recommend, scan
from rtbrain.microstates.templates import Templates
from rtbrain.pipeline import Recipe, build, run
from rtbrain.progress import Progress
from rtbrain.sources.chunking import Source
from rtbrain.sources.recording import open_recording

PeakReader = Callable[[str, Source, Recipe, int], FloatArray]
"""Gives the peaks of a named source in a band, as `peak_maps` does: for those who keep them."""


@dataclass(frozen=True)
class PeakSettings:
    """Which GFP peaks are clustered."""

    per_recording: int = 1000
    """Peaks drawn from each recording, or from all those of a subject; as many as the one with the fewest has."""
    fewest: int = 100
    """A recording or subject with fewer peaks than this is refused, as it would thin out all the others."""
    outlier_sd: float = 3.0
    """Peaks whose GFP lies so many standard deviations above the recording's mean are left out; 0 keeps them all."""
    equal_power: bool = True
    """Scale each recording to the same mean GFP, so that high amplitudes do not decide for everybody."""


@contextmanager
def about(subject: object) -> Iterator[None]:
    """Say in errors which recording they are about."""
    try:
        yield
    except RtbrainError as error:
        raise type(error)(f"{subject}: {error}") from error


def common_channels(sources: Sequence[tuple[str, Source]]) -> tuple[str, ...]:
    """Return the scalp electrodes that all recordings share, in the order of the first."""
    shared: list[str] | None = None
    for name, source in sources:
        with about(name):
            here = [channel for channel in canonical_channels(source.info.channels) if is_scalp(channel)]
        kept = here if shared is None else [channel for channel in shared if channel in here]
        if len(kept) < 3:
            raise ChannelError(
                f"{name}: only {len(kept)} electrodes of the 10-05 system ({', '.join(kept) or 'none'}) are here and "
                f"in all recordings before; it has {', '.join(source.info.channels)}; name those to use (--channels)"
            )
        shared = kept
    return tuple(shared or ())


def peak_maps(
    source: Source, recipe: Recipe, band: int = 0, fewest: int = 1, progress: Callable[[float], None] | None = None
) -> FloatArray:
    """Return the conditioned samples (peaks, channels) at the GFP peaks of one recording, in microvolts.

    Only samples with all channels good and none filled in are taken. Fewer than `fewest` such peaks are an error.
    """
    # A template needs a value for every channel: none may be missing here, unlike when tokens are made.
    recipe = replace(recipe, channels=replace(recipe.channels, min_coverage=1.0))
    chain = build(recipe, upto="samples", band=band)
    info = chain.open(source.info)
    min_distance = info.samples(recipe.assign.min_peak_distance_ms)
    found: list[FloatArray] = []
    finder: PeakFinder | None = None
    usable_tail, tail = np.empty(0, bool), np.empty((0, len(info.channels)))
    for item in run(chain, _watched(source, progress)):
        if isinstance(item, Break):
            finder = None
            continue
        if finder is None:
            finder, usable_tail, tail = PeakFinder(min_distance, item.start), usable_tail[:0], tail[:0]
        usable = np.full(len(item), item.good is None and not item.filled)
        data, usable = np.concatenate([tail, item.data]), np.concatenate([usable_tail, usable])
        first = item.start - len(tail)
        n_good = None if item.good is None else int(item.good.sum())
        peaks = finder(global_field_power(item.data, n_good)) - first
        found.append(data[peaks[usable[peaks]]])
        tail, usable_tail = data[-2:], usable[-2:]
    n_peaks = sum(map(len, found))
    if n_peaks < fewest:
        bad = [name for name, share in chain.find(Quality).bad_share().items() if share > 0.1]
        raise FitError(
            f"only {n_peaks} usable GFP peaks in {source.duration_s:.0f} s, at least {fewest} are needed; channels "
            f"that are often flat, lost or too large: {', '.join(bad) or 'none'}; leave the recording or these "
            "channels out (option --channels), or look at it with `rtbrain inspect`"
        )
    return np.concatenate([*found, tail[:0]])


def _watched(source: Source, progress: Callable[[float], None] | None) -> Iterator[Any]:
    for chunk in source.chunks():
        yield chunk
        if progress is not None:
            progress((chunk.start + len(chunk)) / max(1, source.n_samples))


def pooled_peaks(
    sources: Sequence[tuple[str, Source]],
    recipe: Recipe,
    band: int,
    settings: PeakSettings,
    seed: int,
    progress: Progress | None = None,
    subjects: Mapping[str, str] | None = None,
    read: PeakReader | None = None,
) -> tuple[FloatArray, dict[str, Any]]:
    """Return an equal share of GFP peaks of every recording, or of every subject, and how they came about.

    `subjects` says of each source's name whose it is: all sources of one subject then count as one recording.
    """
    rng = np.random.default_rng(seed)
    owners: dict[str, list[tuple[str, Source]]] = {}
    for name, source in sources:
        owners.setdefault(subjects[name] if subjects else name, []).append((name, source))
    each: list[FloatArray] = []
    found: list[int] = []
    for owner, own in owners.items():
        peaks = _own_peaks(owner, own, recipe, band, settings, progress, read)
        gfp = global_field_power(peaks)
        if settings.outlier_sd > 0:
            kept = gfp <= gfp.mean() + settings.outlier_sd * gfp.std()
            peaks, gfp = peaks[kept], gfp[kept]
        found.append(len(peaks))
        # Drawn at once: all peaks of all recordings would not fit into memory.
        each.append(_drawn(peaks / gfp.mean() if settings.equal_power else peaks, settings.per_recording, rng))
    share = min(map(len, each))
    pooled = np.concatenate([_drawn(peaks, share, rng) for peaks in each])
    return pooled, {"peaks_found": found, "peaks_per_recording": share}


def _own_peaks(
    owner: str,
    own: Sequence[tuple[str, Source]],
    recipe: Recipe,
    band: int,
    settings: PeakSettings,
    progress: Progress | None,
    read: PeakReader | None,
) -> FloatArray:
    """Return the peaks of one recording, or of all those of a subject, of which single ones may have few."""
    found: list[FloatArray] = []
    for name, source in own:
        with about(name):
            if read is not None:
                found.append(read(name, source, recipe, band))
                continue
            report = None if progress is None else partial(progress, f"peaks of {name}")
            found.append(peak_maps(source, recipe, band, settings.fewest if len(own) == 1 else 0, report))
    peaks = np.concatenate(found)
    if len(peaks) < settings.fewest:
        raise FitError(
            f"{owner}: only {len(peaks)} usable GFP peaks in {len(own)} recordings, at least {settings.fewest} are "
            "needed; leave this subject out"
        )
    return peaks


def _drawn(peaks: FloatArray, n: int, rng: np.random.Generator) -> FloatArray:
    if n >= len(peaks):
        return peaks
    drawn: FloatArray = peaks[np.sort(rng.choice(len(peaks), n, replace=False))]
    return drawn


def fit_templates(
    paths: Sequence[Path],
    recipe: Recipe,
    settings: FitSettings,
    *,
    ks: Sequence[int] = (),
    peak_settings: PeakSettings | None = None,
    unit: str | None = None,
    stream: str | None = None,
    progress: Progress | None = None,
) -> Templates:
    """Fit templates of every band to recordings; with `ks`, scan these numbers of states and take the best."""
    twice = [str(path) for path, n in Counter(path.resolve() for path in paths).items() if n > 1]
    if twice:
        raise FitError(f"each recording counts once; named twice: {', '.join(twice)}")
    sources: list[tuple[str, Source]] = [(str(path), open_recording(path, unit=unit, stream=stream)) for path in paths]
    return fit_sources(sources, recipe, settings, ks=ks, peak_settings=peak_settings, progress=progress)


def fit_sources(
    sources: Sequence[tuple[str, Source]],
    recipe: Recipe,
    settings: FitSettings,
    *,
    ks: Sequence[int] = (),
    peak_settings: PeakSettings | None = None,
    progress: Progress | None = None,
    subjects: Mapping[str, str] | None = None,
    read: PeakReader | None = None,
) -> Templates:
    """As `fit_templates`, for named sources of any kind; with `subjects` (by source name), persons weigh the same."""
    if not sources:
        raise FitError("no recordings were given; name at least one file")
    peak_settings = peak_settings or PeakSettings()
    names = tuple(canonical_channels(recipe.channels.names)) or common_channels(sources)
    recipe = replace(recipe, channels=replace(recipe.channels, names=names))
    fits: list[Fit] = []
    bands: list[dict[str, Any]] = []
    for i, band in enumerate(recipe.bands):
        peaks, counts = pooled_peaks(sources, recipe, i, peak_settings, settings.seed, progress, subjects, read)
        report = None if progress is None else partial(progress, f"clustering band {band.name}")
        described: dict[str, Any] = {"band": band.name, **counts}
        if ks:
            scanned = scan(peaks, ks, settings, report)
            advice = recommend(scanned)
            fits.append(scanned[advice.n_states])
            described["scan"] = {
                "n_states": list(scanned),
                "gev": [each.gev for each in scanned.values()],
                "cv": [each.cv for each in scanned.values()],
                "recommended": advice.n_states,
                "reason": advice.reason,
            }
        else:
            fits.append(fit(peaks, settings, report))
        bands.append({**described, **_described(fits[-1])})
    report_card = {
        "rtbrain": __version__,
        "recordings": [Path(name).name for name, _ in sources],
        **({"subjects": list(dict.fromkeys(subjects[name] for name, _ in sources))} if subjects else {}),
        "method": settings.method,
        "fit": asdict(settings),
        "peaks": asdict(peak_settings),
        "bands": bands,
    }
    return Templates(names, tuple(each.maps for each in fits), recipe.to_dict(), report_card)


def _described(result: Fit) -> dict[str, Any]:
    return {
        "n_states": len(result.maps),
        "gev": result.gev,
        "gev_per_state": result.gev_per_state.tolist(),
        "cv": result.cv,
    }
