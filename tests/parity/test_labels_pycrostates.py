"""With the same maps our labels and explained variance of real recordings are those of pycrostates."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rtbrain.messages import Chunk, FloatArray, IntArray, StreamInfo, Tokens
from rtbrain.microstates.assign import AssignSettings, LabelSamples, label, measure
from rtbrain.microstates.gfp import PeakFinder, global_field_power
from rtbrain.microstates.stats import Statistics, statistics
from rtbrain.microstates.templates import Templates, referenced
from rtbrain.pipeline import Recipe, build, run
from rtbrain.tokens.runs import MergeRuns

RECORDINGS = ["mdd/H S1 EC.edf", "eegmat/Subject02_rest.edf", "formats/eeg_microstates/test.edf"]
K = 4


@dataclass(frozen=True)
class Both:
    """One recording, labelled by pycrostates and by us with pycrostates' maps."""

    info: StreamInfo
    data: FloatArray  # (n, channels) microvolts: conditioned, average reference
    maps: FloatArray
    gev_of_peaks: float  # as pycrostates' fit reports it
    their_state: IntArray
    their_parameters: dict[str, Any]
    state: IntArray
    statistics: Statistics


@pytest.fixture(scope="module", params=RECORDINGS)
def both(request: pytest.FixtureRequest, data: Path) -> Both:
    mne = pytest.importorskip("mne")
    open_recording = pytest.importorskip("rtbrain.sources.recording").open_recording
    path = data / request.param
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    recording = open_recording(path)
    chain = build(Recipe(), upto="samples")
    info = chain.open(recording.info)
    chunks = list(run(chain, recording.chunks()))
    assert all(isinstance(chunk, Chunk) and chunk.good is None for chunk in chunks)  # pycrostates knows no masks
    samples = np.concatenate([chunk.data for chunk in chunks])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its imports and repr templates warn
        pytest.importorskip("pycrostates")
        from pycrostates.cluster import ModKMeans
        from pycrostates.io import ChData

        raw = mne.io.RawArray(
            1e-6 * samples.T, mne.create_info(list(info.channels), info.rate_hz, "eeg"), verbose="error"
        )
        model = ModKMeans(n_clusters=K, n_init=5, random_state=1)
        model.fit(ChData(1e-6 * peaks(samples).T, raw.info), verbose="error")
        segmentation = model.predict(raw, factor=0, min_segment_length=0, reject_edges=False, verbose="error")
        parameters = segmentation.compute_parameters()
    maps = referenced(model.cluster_centers_)
    return Both(
        info,
        samples,
        maps,
        model.GEV_,
        segmentation.labels,
        {"names": model.cluster_names, **parameters},
        *ours(chunks, maps, info),
    )


def peaks(samples: FloatArray) -> FloatArray:
    return samples[PeakFinder(0, 0)(global_field_power(samples))]


def ours(chunks: list[Chunk], maps: FloatArray, info: StreamInfo) -> tuple[IntArray, Statistics]:
    """Return the labels and the statistics of the tokens that the very stages of the chain give."""
    labelling = LabelSamples(Templates(info.channels, (maps,)), 0, AssignSettings("samples"), 0.7)
    merging = MergeRuns(0)
    merging.open(labelling.open(info))
    labels = [labelling.process(chunk) for chunk in chunks]
    tokens = Tokens.concat([*(merging.process(each) for each in labels), merging.flush()])
    return np.concatenate([each.state for each in labels]), statistics(tokens, K, info.rate_hz)


def test_labels_agree_on_all_but_ties(both: Both) -> None:
    assert len(both.state) == len(both.their_state)
    assert (both.state == both.their_state).mean() >= 0.9999  # a tie may fall either way; none was seen


def test_explained_variance_of_the_peaks_is_that_of_their_fit(both: Both) -> None:
    samples = peaks(both.data)
    along, gfp = measure(samples, both.maps, 0, len(both.maps), samples.shape[1])
    along = along / np.sqrt(samples.shape[1])
    gev = (label(along)[1] ** 2).sum() / (gfp**2).sum()
    assert gev == pytest.approx(both.gev_of_peaks, abs=1e-6)


@pytest.mark.parametrize(
    ("ours", "theirs"), [("gev", "gev"), ("coverage", "timecov"), ("occurrence_hz", "occurrences")]
)
def test_statistics_of_the_tokens_are_theirs_state_by_state(both: Both, ours: str, theirs: str) -> None:
    wanted = [both.their_parameters[f"{name}_{theirs}"] for name in both.their_parameters["names"]]
    np.testing.assert_allclose(getattr(both.statistics, ours), wanted, rtol=0, atol=1e-6)


def test_mean_durations_of_the_tokens_are_theirs(both: Both) -> None:
    wanted = [1000 * both.their_parameters[f"{name}_meandurs"] for name in both.their_parameters["names"]]
    np.testing.assert_allclose(both.statistics.duration_ms, wanted, rtol=1e-9)
