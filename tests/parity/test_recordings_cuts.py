"""Law 2 on real recordings: the same tokens from chunks of one sample, of some, of random sizes, and from the whole."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtbrain.conditioning.channels import ChannelSettings, canonical, is_scalp
from rtbrain.conditioning.filters import Band, NotchSettings
from rtbrain.messages import Chunk, Tokens
from rtbrain.microstates.assign import AssignSettings
from rtbrain.microstates.gfp import PeakFinder, global_field_power
from rtbrain.microstates.templates import Templates, referenced
from rtbrain.pipeline import Recipe, build, run
from rtbrain.sources.chunking import Size, Source
from rtbrain.sources.recording import open_recording
from tests.conftest import DATA
from tests.streams import assert_same

SIZES: list[Size] = [1, 7, 64, 1000, "random"]
THREE = ["H S1 EC.edf", "H S14 EO.edf", "MDD S20 EC.edf"]
EVERY = sorted(path.name for path in (DATA / "mdd").glob("*.edf"))
K = 4


def default_recipe(source: Source) -> Recipe:
    names = tuple(name for name in map(canonical, source.info.channels) if is_scalp(name))
    return Recipe(channels=ChannelSettings(names))


def two_bands(source: Source) -> Recipe:
    return Recipe(
        channels=default_recipe(source).channels,
        notch=NotchSettings(50.0),
        bands=(Band("theta", 4, 8), Band("broad", 2, 20)),
        assign=AssignSettings("samples"),
        min_duration_ms=20.0,
    )


def some_maps(source: Source, recipe: Recipe) -> Templates:
    """Take four of the recording's own GFP peaks as the maps of each band: real topographies, if not typical ones."""
    maps = []
    for band in range(len(recipe.bands)):
        chain = build(recipe, upto="samples", band=band)
        info = chain.open(source.info)
        samples = np.concatenate([item.data for item in run(chain, source.chunks()) if isinstance(item, Chunk)])
        peaks = PeakFinder(0, 0)(global_field_power(samples))
        maps.append(referenced(samples[peaks[:: len(peaks) // K][:K]]))
    return Templates(info.channels, tuple(maps))


def tokens(source: Source, recipe: Recipe, templates: Templates, size: Size) -> list[Any]:
    chain = build(recipe, templates)
    chain.open(source.info)
    return list(run(chain, source.chunks(size, seed=3)))


def check(source: Source, recipe: Recipe) -> None:
    templates = some_maps(source, recipe)
    wanted = tokens(source, recipe, templates, source.n_samples)  # the whole in one chunk
    found = Tokens.concat([item for item in wanted if isinstance(item, Tokens)])
    assert set(zip(found.band.tolist(), found.state.tolist(), strict=True)) >= {
        (band, state) for band in range(len(recipe.bands)) for state in range(K)
    }
    assert len(found) > 5 * source.duration_s
    for size in [None, *SIZES]:
        assert_same(tokens(source, recipe, templates, size), wanted)


def opened(data: Path, name: str) -> Source:
    path = data / "mdd" / name
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    return open_recording(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", THREE)
def test_tokens_of_a_recording_do_not_depend_on_its_chunks(data: Path, name: str) -> None:
    source = opened(data, name)
    check(source, default_recipe(source))


@pytest.mark.slow
def test_two_bands_labelled_sample_by_sample_do_not_depend_on_chunks(data: Path) -> None:
    source = opened(data, THREE[0])
    check(source, two_bands(source))


@pytest.mark.full
@pytest.mark.parametrize("name", EVERY)
def test_tokens_of_every_recording_do_not_depend_on_its_chunks(data: Path, name: str) -> None:
    source = opened(data, name)
    check(source, default_recipe(source))
