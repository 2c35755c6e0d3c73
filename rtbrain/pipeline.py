"""The recipe, and the only place where the order of the stages is written."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from rtbrain.conditioning.channels import ChannelSettings, PickChannels
from rtbrain.conditioning.continuity import Continuity, ContinuitySettings
from rtbrain.conditioning.filters import Band, BandFilter, Edges, NotchSettings, WarmUp
from rtbrain.conditioning.lines import LineCanceller, LineSettings
from rtbrain.conditioning.quality import Quality, QualitySettings
from rtbrain.conditioning.reference import AverageReference
from rtbrain.conditioning.units import ToMicrovolts, UnitSettings
from rtbrain.config import NotNegative, parse
from rtbrain.errors import ConfigError, TemplateError
from rtbrain.messages import Break, Chunk
from rtbrain.microstates.assign import AssignSettings, LabelPeaks, LabelSamples
from rtbrain.microstates.templates import Templates, load
from rtbrain.stage import Chain, Stage
from rtbrain.tokens.interleave import Interleave
from rtbrain.tokens.runs import MergeRuns, MinDuration


@dataclass(frozen=True)
class HarmoniseSettings(Edges):
    """What makes recordings of different devices, exports and rooms comparable, before the bands.

    A band filter alone lets an export filter or the mains of one group of recordings through, and a decoder learns
    those. The edges lie inside the narrowest filter of all recordings, and lines within them are cancelled.
    """

    lines: LineSettings | None = field(default_factory=LineSettings)

    def __post_init__(self) -> None:
        """Refuse edges without anything between them."""
        if not 0 < self.low_hz < self.high_hz:
            raise ConfigError(f"harmonise: nothing is between low_hz ({self.low_hz:g}) and high_hz ({self.high_hz:g})")


@dataclass(frozen=True)
class Recipe:
    """Every number that shapes the tokens, but for the templates themselves."""

    channels: ChannelSettings = field(default_factory=ChannelSettings)
    units: UnitSettings = field(default_factory=UnitSettings)
    continuity: ContinuitySettings = field(default_factory=ContinuitySettings)
    quality: QualitySettings = field(default_factory=QualitySettings)
    notch: NotchSettings | None = None
    harmonise: HarmoniseSettings | None = None
    bands: tuple[Band, ...] = (Band(),)
    warmup_ms: NotNegative = 1000.0
    """After every start of the filters nothing is emitted for so long."""
    assign: AssignSettings = field(default_factory=AssignSettings)
    min_duration_ms: NotNegative = 0.0
    """A change of state counts once it has lasted so long; 0 takes every change."""

    def __post_init__(self) -> None:
        """Refuse what no chain can be built from."""
        names = [band.name for band in self.bands]
        if not names or len(set(names)) < len(names):
            raise ConfigError(f"bands must be named, each differently; got {names}")
        for band in self.bands:
            if not 0 < band.low_hz < band.high_hz:
                raise ConfigError(f"band {band.name}: {band.low_hz:g} to {band.high_hz:g} Hz is no band")
        if self.harmonise is not None:
            self._check_harmonised(self.harmonise)

    def _check_harmonised(self, settings: HarmoniseSettings) -> None:
        for band in self.bands:
            if band.low_hz < settings.low_hz or band.high_hz > settings.high_hz:
                raise ConfigError(
                    f"band {band.name}: {band.low_hz:g} to {band.high_hz:g} Hz reaches beyond harmonise, "
                    f"{settings.low_hz:g} to {settings.high_hz:g} Hz; narrow the band, or widen harmonise if all "
                    "recordings truly hold what is outside"
                )
        if settings.lines is not None and self.warmup_ms < 1000 * settings.lines.window_s:
            raise ConfigError(
                f"warmup_ms is {self.warmup_ms:g}, but lines are first looked for after "
                f"{settings.lines.window_s:g} s (harmonise.lines.window_s); until then they would be in the tokens: "
                f"set warmup_ms to {1000 * settings.lines.window_s:g} or more"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the recipe as plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any], where: str = "recipe") -> "Recipe":
        """Read a recipe from plain values; unknown keys are refused, all errors are listed."""
        return parse(cls, values, where)


def load_templates(folder: str | Path) -> tuple[Templates, Recipe]:
    """Read a template folder and its recipe, and check that they belong together."""
    templates = load(folder)
    try:
        recipe = Recipe.from_dict(templates.recipe, f"the recipe in {folder}")
    except ConfigError as error:
        raise TemplateError(f"{error}; fit the templates again") from error
    if len(recipe.bands) != len(templates.maps):
        raise TemplateError(f"{folder}: the recipe has {len(recipe.bands)} bands, the maps {len(templates.maps)}")
    # Keys that the file leaves out take their defaults, so that everybody finds them.
    return replace(templates, recipe=recipe.to_dict()), recipe


def build(
    recipe: Recipe,
    templates: Templates | None = None,
    upto: Literal["clean", "samples", "tokens"] = "tokens",
    band: int = 0,
    start: Literal["source", "clean"] = "source",
) -> Chain:
    """Return the chain of a recipe, still to be opened: to tokens, or to the conditioned samples of one band.

    Its first half, from the source to clean samples of all bands, does not depend on the templates; whoever tries many
    templates on the same recordings can run it alone (`upto="clean"`), and the other half afterwards
    (`start="clean"`). Training and live both call this; there is no other list of stages.
    """
    front: list[Stage[Any, Any]] = [
        PickChannels(recipe.channels),
        ToMicrovolts(recipe.units),
        Continuity(recipe.continuity),
        Quality(recipe.quality),
    ]
    if recipe.harmonise is not None and recipe.harmonise.lines is not None:
        front.append(LineCanceller(recipe.harmonise.lines))
    if upto == "clean":
        return Chain(front)
    if start == "clean":
        front = []
    if upto == "samples":
        return Chain([*front, *_conditioning(recipe, recipe.bands[band])])
    if templates is None:
        raise TemplateError("tokens need templates; fit some by `rtbrain templates fit`")
    if len(templates.maps) != len(recipe.bands):
        raise TemplateError(f"the recipe has {len(recipe.bands)} bands, the templates have {len(templates.maps)}")
    branches = [
        Chain([*_conditioning(recipe, band), *_tokenizing(recipe, templates, i)]) for i, band in enumerate(recipe.bands)
    ]
    return Chain([*front, Interleave(branches)])


def _conditioning(recipe: Recipe, band: Band) -> list[Stage[Any, Any]]:
    highest_hz = max(each.high_hz for each in recipe.bands)
    return [BandFilter(band, recipe.notch, highest_hz, recipe.harmonise), WarmUp(recipe.warmup_ms), AverageReference()]


def _tokenizing(recipe: Recipe, templates: Templates, band: int) -> list[Stage[Any, Any]]:
    rule = LabelPeaks if recipe.assign.rule == "peaks" else LabelSamples
    return [
        rule(templates, band, recipe.assign, recipe.channels.min_coverage),
        MinDuration(recipe.min_duration_ms),
        MergeRuns(band),
    ]


def run(chain: Chain, chunks: Iterable[Chunk | Break]) -> Iterable[Any]:
    """Yield what an opened chain makes of a source, its flush included."""
    for chunk in chunks:
        yield from chain.process(chunk)
    yield from chain.flush()
