"""The recipe and the chain built from it."""

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rtbrain.conditioning.channels import ChannelSettings
from rtbrain.conditioning.filters import Band, NotchSettings
from rtbrain.errors import ConfigError, TemplateError
from rtbrain.messages import Break, Chunk, StreamInfo, Tokens
from rtbrain.microstates.assign import AssignSettings
from rtbrain.microstates.templates import Templates, referenced
from rtbrain.pipeline import Recipe, build, run
from rtbrain.stage import Chain
from rtbrain.tokens.interleave import Interleave
from tests.streams import NAMES, eeg

FULL = Recipe(
    channels=ChannelSettings(("Fp1", "C3", "O2"), 0.5),
    notch=NotchSettings(60.0, 1.5),
    bands=(Band("theta", 4, 8, 3), Band("alpha", 8, 13)),
    warmup_ms=500.0,
    assign=AssignSettings("samples", level_s=12.5),
    min_duration_ms=24.0,
)
FRONT = ["PickChannels", "ToMicrovolts", "Continuity", "Quality"]
CONDITIONING = ["BandFilter", "WarmUp", "AverageReference"]


def templates(bands: int) -> Templates:
    rng = np.random.default_rng(1)
    return Templates(NAMES, tuple(referenced(rng.standard_normal((4, len(NAMES)))) for _ in range(bands)))


def names(chain: Chain) -> list[str]:
    return [type(stage).__name__ for stage in chain.stages]


@pytest.mark.parametrize("recipe", [Recipe(), FULL], ids=["default", "full"])
def test_a_recipe_survives_json(recipe: Recipe) -> None:
    assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe


def test_what_a_recipe_leaves_out_has_its_default() -> None:
    assert Recipe.from_dict({}) == Recipe()
    assert Recipe.from_dict({"assign": {"rule": "samples"}}) == Recipe(assign=AssignSettings("samples"))


def test_all_errors_of_a_recipe_are_listed_with_their_paths() -> None:
    values: dict[str, Any] = Recipe().to_dict()
    values["colour"] = "red"
    values["warmup_ms"] = "soon"
    values["bands"] = [{"name": "a", "low_hz": 1, "high_hz": 40, "slope": 3}]
    values["assign"]["rule"] = "guess"
    values["quality"]["flat_ms"] = None
    with pytest.raises(ConfigError) as error:
        Recipe.from_dict(values, "my.yaml")
    text = str(error.value)
    assert "my.yaml has 5 error(s)" in text
    for path in ("colour:", "warmup_ms:", "bands.0.slope:", "assign.rule:", "quality.flat_ms:"):
        assert f"\n  {path}" in text
    assert "'soon'" in text


@pytest.mark.parametrize(
    ("bands", "message"),
    [
        ((), "must be named"),
        ((Band("a"), Band("b", 8, 13), Band("a", 2, 20)), r"each differently; got \['a', 'b', 'a'\]"),
        ((Band("wrong", 40, 1),), "band wrong: 40 to 1 Hz is no band"),
        ((Band("none", 10, 10),), "no band"),
        ((Band("open", 0, 40),), "no band"),
        ((Band("nan", float("nan"), 40),), "no band"),
    ],
)
def test_bands_that_cannot_be_are_refused(bands: tuple[Band, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Recipe(bands=bands)


def test_bands_that_cannot_be_are_refused_in_a_file_too() -> None:
    with pytest.raises(ConfigError, match="no band"):
        Recipe.from_dict({"bands": [{"name": "wrong", "low_hz": 40, "high_hz": 1}]})


def test_the_order_of_the_stages_up_to_samples() -> None:
    assert names(build(Recipe(), upto="samples")) == [*FRONT, *CONDITIONING]


def test_samples_are_those_of_the_chosen_band() -> None:
    assert [build(FULL, upto="samples", band=i).stages[4].band.name for i in (0, 1)] == ["theta", "alpha"]


@pytest.mark.parametrize(("rule", "labels"), [("peaks", "LabelPeaks"), ("samples", "LabelSamples")])
def test_the_order_of_the_stages_up_to_tokens(rule: Any, labels: str) -> None:
    chain = build(replace(FULL, assign=AssignSettings(rule)), templates(2))
    assert names(chain) == [*FRONT, "Interleave"]
    interleave = chain.stages[-1]
    assert isinstance(interleave, Interleave)
    for branch in interleave._branches:
        assert names(branch) == [*CONDITIONING, labels, "MinDuration", "MergeRuns"]


def test_tokens_need_templates() -> None:
    with pytest.raises(TemplateError, match="need templates"):
        build(Recipe())


@pytest.mark.parametrize("bands", [1, 3])
def test_templates_of_another_number_of_bands_are_refused(bands: int) -> None:
    with pytest.raises(TemplateError, match=f"recipe has 2 bands, the templates have {bands}"):
        build(FULL, templates(bands))


def test_templates_of_another_montage_are_refused_on_opening() -> None:
    chain = build(Recipe(), templates(1))
    with pytest.raises(TemplateError, match="no value for Pz"):
        chain.open(StreamInfo(250.0, (*NAMES, "Pz")))


def test_the_chain_declares_its_delays() -> None:
    info = build(Recipe(min_duration_ms=24.0), templates(1)).open(StreamInfo(500.0, NAMES))
    assert info.rate_hz == 250.0
    assert info.wait_s == pytest.approx((62 + 5) / 250)  # 250 ms between peaks, look-ahead of the minimum duration
    assert 0.008 < info.filter_delay_s < 0.02


def test_run_gives_tokens_and_breaks_to_the_last_sample(rng: np.random.Generator) -> None:
    data, times = eeg(2000, rng), np.arange(2000) / 250
    times[1000:] += 1.0
    chain = build(Recipe(), templates(1))
    chain.open(StreamInfo(250.0, NAMES))
    out = list(run(chain, [Chunk(data[:700], times=times[:700]), Chunk(data[700:], 700, times[700:])]))
    at = next(i for i, item in enumerate(out) if isinstance(item, Break))
    before, after = (
        Tokens.concat([item for item in part if isinstance(item, Tokens)]) for part in (out[:at], out[at + 1 :])
    )
    assert out[at] == Break("gap", 1250, 5.0, 250, out[at].reason)
    # One second of warm-up after each start, then every sample is in one token.
    assert (before.start[0], before.start[-1] + before.duration[-1], before.duration.sum()) == (250, 1000, 750)
    assert (after.start[0], after.start[-1] + after.duration[-1], after.duration.sum()) == (1500, 2250, 750)


def test_the_live_path_loads_neither_torch_nor_mne_nor_plotting() -> None:
    heavy = ("torch", "mne", "mne_lsl", "matplotlib", "pycrostates", "pandas", "bokeh")
    code = (
        "import sys, json, rtbrain.pipeline as p\n"
        "p.Recipe.from_dict(p.Recipe().to_dict())\n"
        f"print(json.dumps([name for name in {heavy!r} if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
