"""The main job end to end on an embedded default: synthetic EEG whose states are known, decoded and compared."""

from functools import partial
from pathlib import Path

import numpy as np

from rtbrain.console import console, progress_bar, show_statistics, show_templates
from rtbrain.errors import RtbrainError
from rtbrain.fitting import fit_sources
from rtbrain.messages import Tokens
from rtbrain.microstates.fit import FitSettings
from rtbrain.microstates.templates import Templates, save
from rtbrain.pipeline import Recipe
from rtbrain.sources.chunking import Size
from rtbrain.sources.synthetic import Synthetic, SyntheticSettings
from rtbrain.tokenizing import Tokenized, tokenize, write_tsv

N_STATES = 4


def run(out: Path, seconds: float) -> None:
    """Fit templates to one synthetic recording, tokenize another one in three cuttings, and say how well that went."""
    fitted_on = Synthetic(SyntheticSettings(duration_s=seconds, n_states=N_STATES, seed=1))
    unseen = Synthetic(SyntheticSettings(duration_s=seconds, n_states=N_STATES, seed=2))
    with progress_bar() as progress:
        templates = fit_sources([("synthetic-1", fitted_on)], Recipe(), FitSettings(N_STATES), progress=progress)
        cuttings: dict[str, Size] = {"blocks of seconds": None, "chunks of 10 samples": 10, "random chunks": "random"}
        results = []
        for name, size in cuttings.items():
            report = partial(progress, f"tokens from {name}")
            results.append(tokenize(unseen, templates, size, progress=report))
    save(templates, out)
    write_tsv(out / "tokens.tsv", results[0], templates, "synthetic-2")
    show_templates(out, templates)
    show_statistics("broad", results[0].statistics["broad"])
    console.print(f"templates against the true maps, |correlation|: {_recovered(templates, unseen)}")
    console.print(
        f"samples whose state is the true one: {100 * _agreement(results[0], templates, unseen):.1f} % (chance 25 %)"
    )
    if not all(_same(results[0].tokens, other.tokens) for other in results[1:]):
        raise RtbrainError("the tokens depend on how the stream was cut; this is a defect of rtbrain, please report it")
    console.print(
        f"{len(results[0].tokens)} tokens, identical for blocks of seconds, chunks of 10 samples and random chunks"
    )
    console.print(f"by hand: rtbrain templates show {out} --png; the tokens are in {out / 'tokens.tsv'}")


def _matched(templates: Templates, truth: Synthetic) -> tuple[np.ndarray, np.ndarray]:
    """Return for each fitted map the true state that it is most like, and how much."""
    columns = [truth.info.channels.index(name) for name in templates.channels]
    true = truth.maps[:, columns] - truth.maps[:, columns].mean(axis=1, keepdims=True)
    true /= np.linalg.norm(true, axis=1, keepdims=True)
    corr = np.abs(templates.maps[0] @ true.T)
    return corr.argmax(axis=1), corr.max(axis=1)


def _recovered(templates: Templates, truth: Synthetic) -> str:
    return ", ".join(f"{each:.3f}" for each in _matched(templates, truth)[1])


def _agreement(result: Tokenized, templates: Templates, truth: Synthetic) -> float:
    """Return the share of labelled samples with the true state, the filter's declared delay taken into account."""
    tokens = result.tokens.take(result.tokens.state >= 0)
    said = np.repeat(_matched(templates, truth)[0][tokens.state], tokens.duration)
    offsets = np.concatenate([np.arange(n) for n in tokens.duration])
    at = np.repeat(tokens.start, tokens.duration) + offsets
    delay = round(result.info.filter_delay_s * result.info.rate_hz)
    factor = round(truth.info.rate_hz / result.info.rate_hz)
    return float((said == truth.states[np.maximum(0, (at - delay) * factor)]).mean())


def _same(a: Tokens, b: Tokens) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("state", "start", "duration"))
