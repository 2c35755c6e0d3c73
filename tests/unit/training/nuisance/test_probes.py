from collections.abc import Sequence

import numpy as np
import pytest

from rtbrain.errors import ConfigError, LeakError
from rtbrain.messages import FloatArray
from rtbrain.sources.chunking import Source
from rtbrain.training.datasets import choose
from rtbrain.training.nuisance.features import measure
from rtbrain.training.nuisance.lines import find_lines
from rtbrain.training.nuisance.probes import (
    Decide,
    altered,
    lines_alone,
    probe_filters,
    probe_lines,
    response_between,
)
from rtbrain.training.nuisance.spectrum import measure_spectrum
from rtbrain.training.trials import Trial

from .planted import CONFIG, RATE_HZ, Change, humming, narrow, opened, people

WIDE = ((1.0, 4.0), (4.0, 8.0), (8.0, 13.0), (13.0, 30.0), (30.0, 45.0))
INSIDE = ((3.0, 8.0), (8.0, 13.0), (13.0, 20.0), (20.0, 26.0))


def band_power(sources: Sequence[Source], bands: Sequence[tuple[float, float]]) -> FloatArray:
    rows = []
    for source in sources:
        data = np.concatenate([chunk.data for chunk in source.chunks(64)])
        power = np.abs(np.fft.rfft(data - data.mean(axis=0), axis=0)) ** 2
        hz = np.fft.rfftfreq(len(data), 1 / source.info.rate_hz)
        each = np.array([np.log(power[(hz >= low) & (hz < high)].mean(axis=0)).mean() for low, high in bands])
        rows.append(each - each.mean())
    return np.array(rows)


def decoder(training: Sequence[Trial], bands: Sequence[tuple[float, float]]) -> Decide:
    """Band power and logistic regression, trained."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression())
    model.fit(band_power([trial.open() for trial in training], bands), [trial.label for trial in training])
    return lambda sources: [int(k) for k in model.predict(band_power(sources, bands))]


def sides(plant: Change) -> tuple[list[Trial], list[Trial]]:
    """Training and test trials; the ill have the plant."""
    found = choose(people(24, lambda label: plant if label else None), CONFIG.tasks["group"])
    return list(found.trials[:16]), list(found.trials[16:])


def test_a_filter_detector_flips_and_a_decoder_between_the_edges_does_not() -> None:
    training, tests = sides(narrow)
    fooled = probe_filters(decoder(training, WIDE), tests, training)
    assert [probe.what for probe in fooled] == ["filter A made B", "filter B made A"]
    assert [len(probe.trials) for probe in fooled] == [3, 5]  # one of the well has the other class's filter
    assert all(probe.flips == len(probe.trials) for probe in fooled)
    assert str(fooled[0]) == "filter A made B: 3 of 3 answers flip"
    honest = probe_filters(decoder(training, INSIDE), tests, training)
    assert sum(probe.flips for probe in honest) == 0


def test_a_line_detector_flips() -> None:
    training, tests = sides(humming(5.2))
    probe = probe_lines(decoder(training, INSIDE), tests, training)
    assert probe.trials == ("s16_rest", "s18_rest", "s20_rest")  # s22 has lines
    assert probe.before == (0, 0, 0)
    assert probe.flips == 3


def test_the_response_of_one_group_becomes_that_of_the_other() -> None:
    training, _ = sides(narrow)
    learnt = measure(training)
    wide, slim = ([each for each in learnt if each.trial.label == label] for label in (0, 1))
    hz, db = response_between(wide, slim)
    assert db[(hz >= 2.5) & (hz <= 28)].tolist() == [0.0] * int(((hz >= 2.5) & (hz <= 28)).sum())
    assert np.interp([0.5, 45.0], hz, db).max() < -15
    back = response_between(slim, wide)[1]
    assert back.max() <= 20


def test_shaping_leaves_the_middle_and_moves_the_edges() -> None:
    training, tests = sides(narrow)
    seen: list[Source] = []

    def watch(sources: Sequence[Source]) -> list[int]:
        seen.extend(sources)
        return [0] * len(sources)

    probe_filters(watch, [trial for trial in tests if trial.label == 0][:1], training)
    plain, shaped = (measure_spectrum(source) for source in seen)
    assert shaped.between(3, 26) == pytest.approx(plain.between(3, 26), abs=0.1)
    assert shaped.level(45, 1) - plain.level(45, 1) < -15
    whole = np.concatenate([chunk.data for chunk in seen[1].chunks()])
    cut = np.concatenate([chunk.data for chunk in seen[1].chunks(17)])
    np.testing.assert_array_equal(whole, cut)


def test_lines_alone_are_only_lines() -> None:
    source = opened(3, humming(5.2))
    data = np.concatenate([chunk.data for chunk in source.chunks()])
    found = find_lines(measure_spectrum(source))
    assert len(found) == 3
    kept = lines_alone(data, RATE_HZ, found)
    plain = np.concatenate([chunk.data for chunk in opened(3, None).chunks()])
    hum = data - plain
    assert np.corrcoef(kept[:, 0], hum[:, 0])[0, 1] > 0.9
    assert np.corrcoef((data - kept)[:, 0], hum[:, 0])[0, 1] < 0.1


def test_lost_samples_stay_lost_and_do_not_spread() -> None:
    def lose(data: FloatArray) -> FloatArray:
        spoilt = data.copy()
        spoilt[100:120, 1] = np.nan
        return spoilt

    source = altered(altered(opened(0, None), lose), lambda data: data - data.mean(axis=0))
    data = np.concatenate([chunk.data for chunk in source.chunks()])
    assert np.isnan(data).sum() == 20
    assert np.isnan(data[100:120, 1]).all()


def test_nothing_to_exchange_and_leaks_are_refused() -> None:
    found = choose(people(16), CONFIG.tasks["group"])
    training, tests = list(found.trials[:12]), list(found.trials[12:])
    with pytest.raises(ConfigError, match="one recording filter only"):
        probe_filters(lambda sources: [0] * len(sources), tests, training)
    with pytest.raises(ConfigError, match="no lines to exchange"):
        probe_lines(lambda sources: [0] * len(sources), tests, training)
    with pytest.raises(LeakError, match="s00"):
        probe_filters(lambda sources: [0] * len(sources), training[:1], training)
