"""A trained model as a folder of plain files: graphs, templates, and `bundle.json` with all that is known of them.

Hashes tell that a file is what training wrote. They are no signature: whoever can change a file can change its hash.
"""

import hashlib
import json
import os
import shutil
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rtbrain.config import NotNegative, Positive, Share, parse
from rtbrain.decoder.session import load_step
from rtbrain.errors import BundleError, ConfigError, RateError, TemplateError
from rtbrain.messages import FloatArray
from rtbrain.microstates import templates as template_folder
from rtbrain.microstates.templates import Templates
from rtbrain.pipeline import Recipe, load_templates
from rtbrain.published import StateStatistics

CARD, DECODER, STEP = "bundle.json", "decoder.onnx", "step.onnx"
PARITY = "parity.json"
"""The certificate beside a bundle that names its hash; made after it, so not one of its files."""
FORMAT = 1
RATE_TOLERANCE = 0.01
"""Largest relative difference between the tokenizer's rate and one that the bundle was trained at."""

_FILES = (DECODER, STEP, template_folder.NPZ, template_folder.JSON)
_MODEL_ENDINGS = {".onnx", ".npz", ".data", ".pt", ".bin"}


@dataclass(frozen=True)
class Trust:
    """What an answer must rest on to be trusted."""

    min_quality: Share
    """Mean share of good channels."""
    min_gev: Share
    """Share of the field's variance that the templates explain."""
    min_context_s: NotNegative
    """Seconds of EEG behind the answer."""
    max_age_s: Positive
    """Age of the newest sample."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """What `bundle.json` says, but for the hashes."""

    name: str
    classes: tuple[str, ...]
    context_s: Positive
    """The most that a context holds; never more than training saw."""
    every_s: Positive = 0.1
    """Grid of sample time on which answers are due."""
    temperature: Positive = 1.0
    """Logits are divided by it; see `calibrated`."""
    trust: Trust
    rates_hz: tuple[Positive, ...] = ()
    """Rates of the tokenizer in training, after decimation."""
    licence: str = ""
    """Of the model, which follows its training data; the licence of the program covers code only."""
    provenance: dict[str, Any] = field(default_factory=dict)
    """Data set, task, subjects, protocol, commit, seed, version, when."""
    metrics: dict[str, Any] = field(default_factory=dict)
    """What was measured, and on whom."""
    statistics: tuple[StateStatistics, ...] = ()
    """Of each band's microstates in the training data, to compare a live session with."""


@dataclass(frozen=True, kw_only=True)
class Bundle(Card):
    """A verified bundle."""

    folder: Path
    templates: Templates
    recipe: Recipe
    sha256: str
    """Of `bundle.json`, which holds the hashes of all other files: the bundle's identity."""

    @property
    def step(self) -> Path:
        """Return the graph of the live path; see rtbrain.decoder.session."""
        return self.folder / STEP

    @property
    def decoder(self) -> Path:
        """Return the graph for whole sequences."""
        return self.folder / DECODER

    def check_rate(self, rate_hz: float) -> None:
        """Refuse tokens of a rate that training did not see."""
        known = self.rates_hz
        if known and not any(abs(rate_hz / each - 1) <= RATE_TOLERANCE for each in known):
            raise RateError(
                f"the stream gives tokens at {rate_hz:g} Hz, the bundle {self.name} was trained at "
                f"{', '.join(f'{each:g}' for each in known)} Hz; set the amplifier to one of these or to a multiple"
            )


def calibrated(probabilities: ArrayLike, temperature: float) -> FloatArray:
    """Return probabilities (..., classes) as if the logits had been divided by the temperature."""
    with np.errstate(divide="ignore"):  # a probability that was rounded to 0 stays 0
        logits = np.log(np.asarray(probabilities, np.float64)) / temperature
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    out: FloatArray = odds / odds.sum(axis=-1, keepdims=True)
    return out


def save_bundle(folder: Path, card: Card, templates: Templates, graphs: Path) -> Bundle:
    """Write a bundle from a card, templates and the folder that holds both graphs; the folder appears whole.

    Raises
    ------
    ConfigError
        The folder exists already: a bundle that somebody may be using is never replaced.
    BundleError
        The graphs do not fit the templates or the classes.
    """
    check_free(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.with_name(f".{os.getpid()}-{folder.name}")
    try:
        template_folder.save(templates, temporary)
        for name in (DECODER, STEP):
            shutil.copyfile(graphs / name, temporary / name)
        files = {name: _sha256((temporary / name).read_bytes()) for name in _FILES}
        own = {each.name: getattr(card, each.name) for each in fields(Card)}
        values = asdict(Card(**own)) | {"format": FORMAT, "files": files}
        text = json.dumps(values, indent=2, allow_nan=False) + "\n"
        (temporary / CARD).write_text(text, encoding="utf-8")
        _check_fit(load_bundle(temporary))
        if folder.exists():
            folder.rmdir()  # it is empty
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return load_bundle(folder)


def check_free(folder: Path) -> None:
    """Refuse a folder in which something is already."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} exists already, and a bundle is never replaced; choose another name, or remove it")


def load_bundle(folder: str | Path) -> Bundle:
    """Read a bundle and verify every file of it.

    Raises
    ------
    BundleError
        A file is missing, is not the one that training wrote, or does not belong to the bundle.
    """
    folder = Path(folder)
    remedy = "restore the folder from where you have it from, or train again by `rtbrain train`"
    try:
        content = (folder / CARD).read_bytes()
    except OSError as error:
        why = f"{folder} is no bundle: {CARD} cannot be read ({error.strerror})"
        if inside := sorted(path.parent.name for path in folder.glob(f"*/{CARD}")):
            raise BundleError(f"{why}; it holds the bundles {', '.join(inside)}: name one of them") from error
        if (folder / template_folder.NPZ).is_file() and not (folder / DECODER).exists():
            remedy = "it holds templates alone; a decoder, with templates of its own, is made by `rtbrain train`"
        raise BundleError(f"{why}; {remedy}") from error
    try:
        values = json.loads(content)
        version, files = values.pop("format"), values.pop("files")
        if version != FORMAT:
            raise BundleError(f"{folder / CARD} has format {version}, this rtbrain reads {FORMAT}; train again")
        card = parse(Card, values, str(folder / CARD))
        listed = parse(dict[str, str], files, f"{folder / CARD}: files")
    except (ValueError, KeyError, AttributeError, TypeError, ConfigError) as error:
        raise BundleError(f"{folder / CARD} is damaged ({error}); {remedy}") from error
    if set(listed) != set(_FILES):
        wrong = ", ".join(sorted(set(listed) ^ set(_FILES)))
        raise BundleError(f"{folder / CARD} must list {', '.join(_FILES)}, and errs in {wrong}; {remedy}")
    for name, expected in listed.items():
        try:
            found = _sha256((folder / name).read_bytes())
        except OSError as error:
            raise BundleError(f"{folder / name} cannot be read ({error.strerror}); {remedy}") from error
        if found != expected:
            raise BundleError(f"{folder / name} is not the file that {CARD} names (its hash differs); {remedy}")
    extra = sorted(path.name for path in folder.iterdir() if path.suffix in _MODEL_ENDINGS and path.name not in _FILES)
    if extra:
        raise BundleError(
            f"{folder / extra[0]} is not listed in {CARD}; move it away: a bundle holds its own files only"
        )
    try:
        templates, recipe = load_templates(folder)
    except TemplateError as error:
        raise BundleError(f"{error}; {remedy}") from error
    if not recipe.channels.names:  # a recipe that took what its recordings had means these electrodes now
        recipe = replace(recipe, channels=replace(recipe.channels, names=templates.channels))
    own = {each.name: getattr(card, each.name) for each in fields(Card)}
    return Bundle(**own, folder=folder, templates=templates, recipe=recipe, sha256=_sha256(content))


def _check_fit(bundle: Bundle) -> None:
    schema = load_step(bundle.step, "cpu").schema
    said = (tuple(map(len, bundle.templates.maps)), len(bundle.classes))
    if (schema.states, schema.n_classes) != said:
        raise BundleError(
            f"{STEP} is for {schema.states} states and {schema.n_classes} classes, templates and card are for "
            f"{said[0]} and {said[1]}; export the model that belongs to them"
        )


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
