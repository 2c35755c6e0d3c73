"""Tokens of a recording, and the files they are written to."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtbrain import __version__
from rtbrain.conditioning.channels import PickChannels
from rtbrain.conditioning.continuity import Continuity
from rtbrain.conditioning.quality import Quality
from rtbrain.errors import ConfigError, SourceError
from rtbrain.messages import UNLABELLED, Break, Chunk, StreamInfo, Token, Tokens
from rtbrain.microstates.stats import Statistics, statistics
from rtbrain.microstates.templates import Templates, fingerprint
from rtbrain.pipeline import Recipe, build, run
from rtbrain.sources.chunking import Size, Source
from rtbrain.stage import Chain
from rtbrain.writing import replacing

COLUMNS = {
    "onset": "start of the token in seconds after the recording's first sample; the first one follows the warm-up",
    "duration": "seconds",
    "band": "name of the frequency band",
    "state": "microstate, counted from 0 as the templates are; n/a where no template could be assigned",
    "start": "first sample, counted at the tokenizer's rate",
    "samples": "duration in samples at that rate",
    "gfp": "mean global field power in microvolts",
    "gfp_rel": "natural logarithm of mean GFP over its running level when the token closed",
    "corr": "mean absolute spatial correlation with the state's template",
    "quality": "mean share of good channels; filled-in samples count 0",
    "gev": "share of the field's variance that the template explains during the token",
}
HEADER = "\t".join(COLUMNS) + "\n"


@dataclass(frozen=True)
class Tokenized:
    """Everything that one pass over a source gave."""

    tokens: Tokens
    breaks: tuple[Break, ...]
    info: StreamInfo
    """The tokenizer's output: its rate, channels and delays."""
    continuity: dict[str, Any]
    missing_channels: tuple[str, ...]
    bad_share: dict[str, float]
    """Share of time during which each channel was bad, for those that ever were."""
    statistics: dict[str, Statistics]
    """By band."""


@dataclass(frozen=True)
class _Counts:
    """What the first half of a chain has counted of a recording."""

    duration_s: float
    continuity: dict[str, Any]
    missing_channels: tuple[str, ...]
    bad_share: dict[str, float]

    @classmethod
    def of(cls, chain: Chain, source: Source) -> "_Counts":
        continuity, missing = chain.find(Continuity).report(), chain.find(PickChannels).missing
        return cls(source.duration_s, continuity, missing, chain.find(Quality).bad_share())


@dataclass(frozen=True)
class Cleaned:
    """A whole recording as it leaves the first half of the chain, which all templates and bands share."""

    items: tuple[Chunk | Break, ...]
    info: StreamInfo
    counts: _Counts

    @property
    def n_bytes(self) -> int:
        """Return about how much memory it takes."""
        return sum(item.data.nbytes for item in self.items if isinstance(item, Chunk))


def tokenize(
    source: Source,
    templates: Templates,
    size: Size = None,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Tokenized:
    """Run a source through the recipe that its templates were fitted with, in chunks of the given size."""
    recipe = Recipe.from_dict(templates.recipe, "the templates' recipe")
    chain = build(recipe, templates)
    info = chain.open(source.info)
    seen = 0

    def chunks() -> Iterable[Any]:
        nonlocal seen
        for chunk in source.chunks(size, seed):
            yield chunk
            seen += len(chunk)
            if progress is not None:
                progress(seen / max(1, source.n_samples))

    items = list(run(chain, chunks()))
    return _tokenized(items, info, _Counts.of(chain, source), templates, recipe)


def clean(source: Source, recipe: Recipe) -> Cleaned:
    """Run a source through the first half of the chain, for `tokenize_cleaned`."""
    chain = build(recipe, upto="clean")
    info = chain.open(source.info)
    items = tuple(run(chain, source.chunks()))
    return Cleaned(items, info, _Counts.of(chain, source))


def tokenize_cleaned(cleaned: Cleaned, templates: Templates) -> Tokenized:
    """Run what `clean` returned through the other half: together the same as `tokenize`."""
    recipe = Recipe.from_dict(templates.recipe, "the templates' recipe")
    chain = build(recipe, templates, start="clean")
    info = chain.open(cleaned.info)
    return _tokenized(list(run(chain, cleaned.items)), info, cleaned.counts, templates, recipe)


def _tokenized(
    items: Sequence[Any], info: StreamInfo, counts: _Counts, templates: Templates, recipe: Recipe
) -> Tokenized:
    """Put together what a chain gave; refuse a recording without a single state."""
    breaks = tuple(item for item in items if isinstance(item, Break))
    tokens = Tokens.concat([item for item in items if not isinstance(item, Break)])
    if not len(tokens):
        raise SourceError(
            f"{counts.duration_s:.1f} s give no token: the first {recipe.warmup_ms / 1000:g} s after every start or "
            "break are the filters' warm-up; give a longer recording"
        )
    if (tokens.state == UNLABELLED).all():
        raise SourceError(
            f"not one of {counts.duration_s:.0f} s could be labelled; channels that are flat, lost or too large most "
            f"of the time: {', '.join(name for name, share in counts.bad_share.items() if share > 0.5) or 'none'}; "
            "look at the recording with `rtbrain inspect`"
        )
    return Tokenized(
        tokens=tokens,
        breaks=breaks,
        info=info,
        continuity=counts.continuity,
        missing_channels=counts.missing_channels,
        bad_share=counts.bad_share,
        statistics={
            band.name: statistics(tokens, len(templates.maps[i]), info.rate_hz, i)
            for i, band in enumerate(recipe.bands)
        },
    )


def write_tsv(path: Path, result: Tokenized, templates: Templates, source_name: str) -> Path:
    """Write the tokens as tab-separated values, and beside them a JSON file that explains them; return its path."""
    bands = [band["name"] for band in templates.recipe["bands"]]
    rate_hz = result.info.rate_hz
    card = path.with_suffix(".json")
    about = {
        "rtbrain": __version__,
        "source": source_name,
        "rate_hz": rate_hz,
        "columns": COLUMNS,
        "templates": {"channels": templates.channels, "sha256": fingerprint(templates)},
        "recipe": templates.recipe,
        "continuity": result.continuity,
        "breaks": [{"onset": each.at_s, "kind": each.kind, "reason": each.reason} for each in result.breaks],
        "missing_channels": result.missing_channels,
        "bad_share": result.bad_share,
        "statistics": {name: each.to_dict() for name, each in result.statistics.items()},
    }
    with replacing(path) as table_path, replacing(card) as card_path:
        with table_path.open("w", encoding="utf-8") as table:
            table.write(HEADER)
            for token in result.tokens:
                table.write(_row(token, bands[token.band], rate_hz))
        card_path.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    return card


def _row(token: Token, band: str, rate_hz: float) -> str:
    state = "n/a" if token.state == UNLABELLED else str(token.state)
    gev = token.explained / token.power if token.power else 0.0
    return (
        f"{token.start / rate_hz:.6f}\t{token.duration / rate_hz:.6f}\t{band}\t{state}\t{token.start}\t"
        f"{token.duration}\t{token.gfp:.6g}\t{token.gfp_rel:.6g}\t{token.corr:.6g}\t{token.quality:.6g}\t{gev:.6g}\n"
    )


def check_target(path: Path) -> None:
    """Refuse to overwrite anything that is not a token table, or the JSON file beside one, of an earlier run."""
    card = path.with_suffix(".json")
    if path.suffix == ".json":
        raise ConfigError(f"{path} is where the tokens' description goes; give the table another ending, such as .tsv")
    if not path.parent.is_dir():
        raise ConfigError(f"the folder of {path} does not exist")
    if path.exists() and not path.read_bytes().startswith(HEADER.encode()):
        raise ConfigError(f"{path} exists and is no token table; choose another name or remove it")
    if card.exists() and not path.exists():
        raise ConfigError(f"{card} exists, and the tokens' description would overwrite it; choose another name")
