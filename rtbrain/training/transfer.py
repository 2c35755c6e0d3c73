"""Templates of one data set on the recordings of another, to see whether a vocabulary of brain states carries over.

The other set's recordings are conditioned by its own recipe, in the target's frequency bands; its maps are carried over
to the target's electrodes. Everything after the templates is that of any evaluation of the target. All people of the
other set may be used, for none of them is in the target; a recording that both sets hold is refused.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rtbrain.errors import ConfigError, LeakError
from rtbrain.messages import FloatArray
from rtbrain.microstates.fit import FitSettings
from rtbrain.microstates.templates import Templates
from rtbrain.pipeline import Recipe
from rtbrain.progress import Progress
from rtbrain.sources.chunking import Source
from rtbrain.training.evaluate import Plan
from rtbrain.training.evaluate_fold import PEAKS, STARTS
from rtbrain.training.methods import Method, TokenNeed, with_bands
from rtbrain.training.transfer_spline import maps_on
from rtbrain.training.trial_cache import TrialCache
from rtbrain.training.trial_templates import fit_trials

USUAL = ("microstate-stats", "paper-text")
"""Methods that a transfer is shown by, unless others are named: of one broad band, which all sets have."""


def with_templates_of(source: Plan, target: Plan, cache: Path, progress: Progress | None = None) -> Plan:
    """Return the target's plan with the templates of another set, in all that its methods read.

    Parameters
    ----------
    source, target : Plan
        Whose templates, and whose recordings.
    cache : Path
        Folder in which the peaks of recordings are kept.
    progress : callable, optional
        Told how far the fit is.
    """
    check_transfer(source, target)
    seed = target.config.protocol.seed
    made = {need: _foreign(source, target, need, cache, seed, progress) for need in _needs(target)}
    return replace(target, foreign=made)


def check_transfer(source: Plan, target: Plan) -> None:
    """Refuse templates that cannot be carried over, or must not be, before anything is fitted.

    Raises
    ------
    ConfigError
        The source's recordings are not used in one of the target's bands.
    LeakError
        The sets share a recording.
    """
    _refuse_shared(source, target)
    for need in _needs(target):
        conditioned_as(source.recipe, _recipe(target, need))


def _needs(target: Plan) -> list[TokenNeed]:
    return sorted({need for method in target.methods for need in method.needs}, key=repr)


def _recipe(target: Plan, need: TokenNeed) -> Recipe:
    return with_bands(target.recipe) if need.several_bands else target.recipe


def token_methods(methods: Sequence[Method]) -> list[Method]:
    """Return the methods that read tokens; refuse if none does, since templates then change nothing."""
    kept = [method for method in methods if method.needs]
    if not kept:
        raise ConfigError(
            f"{', '.join(method.name for method in methods)}: none of these reads tokens, so templates change "
            "nothing; name others by --methods"
        )
    return kept


def conditioned_as(source: Recipe, target: Recipe) -> Recipe:
    """Return the source's recipe in the target's bands, as far as the source's recordings are used at all."""
    edges = source.harmonise
    bands = target.bands
    if edges is not None:
        low, high = edges.low_hz, edges.high_hz
        bands = tuple(
            replace(band, low_hz=max(band.low_hz, low), high_hz=min(band.high_hz, high)) for band in target.bands
        )
        outside = [band.name for band, own in zip(target.bands, bands, strict=True) if own.low_hz >= own.high_hz]
        if outside:
            raise ConfigError(
                f"the source's recordings are used from {low:g} to {high:g} Hz only, and the target's band "
                f"{', '.join(outside)} lies outside; choose methods of one broad band"
            )
    return replace(source, bands=bands)


def _foreign(
    source: Plan, target: Plan, need: TokenNeed, cache: Path, seed: int, progress: Progress | None
) -> Templates:
    """Fit templates to all people of the source and carry them over to the target's electrodes."""
    recipe = _recipe(target, need)
    own, trials = conditioned_as(source.recipe, recipe), {trial.name: trial for trial in source.chosen.trials}
    kept = TrialCache(cache, source.content)
    done = 0

    def read(name: str, _: Source, used: Recipe, band: int) -> FloatArray:
        nonlocal done
        done += 1
        if progress is not None:
            progress(f"peaks of {source.config.name}", done / (len(trials) * len(used.bands)))
        return kept.peaks(trials[name], used, band)

    settings = FitSettings(need.n_states or source.config.n_states, n_starts=STARTS, seed=seed)
    fitted = fit_trials(source.chosen.trials, own, settings, peak_settings=PEAKS, read=read)
    channels = target.recipe.channels.names
    maps = tuple(maps_on(each, fitted.channels, channels) for each in fitted.maps)
    report = fitted.report | {"transferred": {"from": source.config.name, "channels": list(fitted.channels)}}
    return Templates(tuple(channels), maps, recipe.to_dict(), report)


def _refuse_shared(source: Plan, target: Plan) -> None:
    """Refuse sets that share a recording: its person would be in the templates and on the test side."""
    known = [{each for own in plan.content.values() for each in own[:1]} for plan in (source, target)]
    if set.intersection(*known):
        raise LeakError(
            f"{source.config.name} and {target.config.name} hold the same recording, so templates of the one have "
            "seen people of the other; take it out of one of them"
        )
