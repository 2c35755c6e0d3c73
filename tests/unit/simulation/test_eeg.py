"""Simulated heads and recordings."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import welch

from rtbrain.conditioning.quality import Quality, QualitySettings
from rtbrain.errors import ChannelError, ConfigError
from rtbrain.messages import FloatArray
from rtbrain.simulation import Appearance, Design, Interval, World
from rtbrain.simulation.head import Head, make_head
from rtbrain.simulation.seeding import generator
from rtbrain.sources.electrodes import TEN_TWENTY_19
from rtbrain.sources.synthetic import dipole_maps

CLEAN = Appearance(
    brain_noise=0, sensor_noise_uv=0, line_uv=0, drift_uv=0, blinks_per_minute=0, bad_electrode=0, amplitude_sd=0
)


def whole(world: World, **changes: object) -> FloatArray:
    arguments = {"subject": 0, "label": 0, "trial": 0, "channels": TEN_TWENTY_19, "rate_hz": 250.0, "seconds": 10.0}
    return np.concatenate(list(world.trial(**(arguments | changes)).chunks()))  # type: ignore[arg-type]


def referenced(maps: FloatArray) -> FloatArray:
    return maps - maps.mean(axis=1, keepdims=True)


def correlations(one: Head, other: Head) -> FloatArray:
    a, b = referenced(one.maps), referenced(other.maps)
    return np.abs(np.sum(a * b, axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1))


def test_maps_are_the_canonical_ones_and_differ_a_little_between_people() -> None:
    middle = make_head(replace(CLEAN, location_sd=0, direction_sd=0), 6, TEN_TWENTY_19, 0, 0)
    simple = dipole_maps(TEN_TWENTY_19, 6)  # the same sources in an endless homogeneous head
    assert np.abs(np.sum(referenced(middle.maps) * simple, axis=1) / 19).min() > 0.85
    assert middle.maps.std(axis=1) == pytest.approx(1.0)
    between = np.abs(np.corrcoef(middle.maps)) - np.eye(6)
    assert between.max() < 0.8
    people = [make_head(CLEAN, 6, TEN_TWENTY_19, 0, subject) for subject in range(5)]
    alike = np.array([correlations(middle, person) for person in people])
    assert 0.8 < alike.mean() < 0.995
    assert (alike < 0.9999).all()


@pytest.mark.parametrize("still", ["location_sd", "direction_sd"])
def test_sources_differ_in_place_and_in_direction(still: str) -> None:
    look = replace(CLEAN, **{still: 0.0})
    assert (correlations(*(make_head(look, 6, TEN_TWENTY_19, 0, subject) for subject in (0, 1))) < 0.99999).all()


def test_the_reference_is_linked_mastoids() -> None:
    head = make_head(CLEAN, 4, ("TP9", "TP10", "Cz", "Oz"), 0, 0)
    for field in (head.maps, head.noise):
        assert field[:, 0] + field[:, 1] == pytest.approx(0.0, abs=1e-9)
        assert np.abs(field[:, 0]).max() > 1e-3


def test_the_first_maps_do_not_depend_on_how_many_there_are() -> None:
    assert correlations(make_head(CLEAN, 4, TEN_TWENTY_19, 0, 3), _first_four()) == pytest.approx(1.0)


def _first_four() -> Head:
    head = make_head(CLEAN, 6, TEN_TWENTY_19, 0, 3)
    return replace(head, maps=head.maps[:4])


def test_electrodes_are_found_however_they_are_spelled() -> None:
    modern = make_head(CLEAN, 4, ("Fp1", "T7", "P8", "Cz", "PO9"), 0, 0)
    spelled = make_head(CLEAN, 4, ("EEG FP1-LE", "t3", "T6", "CZ", "CB1"), 0, 0)
    assert spelled.maps == pytest.approx(modern.maps)
    with pytest.raises(ChannelError, match="A2-A1, Nose"):
        make_head(CLEAN, 4, ("Fp1", "Cz", "EEG A2-A1", "Nose"), 0, 0)


def test_blinks_are_frontal() -> None:
    blink = dict(zip(TEN_TWENTY_19, make_head(CLEAN, 4, TEN_TWENTY_19, 0, 0).blink, strict=True))
    assert blink["Fp1"] == pytest.approx(blink["Fp2"], rel=0.01)
    assert blink["Fp1"] > 0.7
    assert max(abs(blink[name]) for name in ("Pz", "O1", "O2", "T8")) < 0.2


def test_a_recording_is_the_same_at_every_pass_and_in_every_world_of_the_seed() -> None:
    made = World(seed=3).trial(1, 1, 2, TEN_TWENTY_19, 250.0, 9.5)
    once, twice = (np.concatenate(list(made.chunks())) for _ in range(2))
    assert once.shape == (made.n_samples, 19) == (2375, 19)
    assert np.array_equal(once, twice)
    other = World(seed=3)
    other.trial(0, 0, 0, TEN_TWENTY_19, 250.0, 1.0)  # asking for something else first changes nothing
    assert np.array_equal(once, whole(other, subject=1, label=1, trial=2, seconds=9.5))
    longer = whole(other, subject=1, label=1, trial=2, seconds=14.0)
    assert np.array_equal(longer[:2250], once[:2250])  # the end of a trial cuts its last run only
    for change in ({"subject": 2}, {"trial": 3}, {"label": 0}):
        assert not np.array_equal(
            once, whole(World(seed=3), **({"subject": 1, "label": 1, "trial": 2} | change), seconds=9.5)
        )
    assert not np.array_equal(once, whole(World(seed=4), subject=1, label=1, trial=2, seconds=9.5))


def test_people_trials_and_segments_are_drawn_by_themselves() -> None:
    world = World()
    here = world.trial(0, 0, 0, TEN_TWENTY_19, 250.0, 20.0)
    again = world.trial(0, 0, 1, TEN_TWENTY_19, 250.0, 20.0)
    other = world.trial(1, 0, 0, TEN_TWENTY_19, 250.0, 20.0)
    assert here.traits[0].rate == again.traits[0].rate != other.traits[0].rate
    assert here.amplitude_uv == again.amplitude_uv != other.amplitude_uv
    assert here.traits[0].order != again.traits[0].order
    session = world.session(0, [(20.0, 1), (20.0, 1)], TEN_TWENTY_19, 250.0)
    assert session.traits[0].order != session.traits[1].order
    parts = np.split(session.states, 2)
    for one, two in ((here.states, again.states), (here.states, other.states), parts):
        assert 0.1 < np.mean(one == two) < 0.4
    noisy = World(Design(eeg=replace(CLEAN, amplitude_uv=0.1, brain_noise=100)))
    first = whole(noisy)[:, 0]
    for change in ({"trial": 1}, {"subject": 1}):
        assert abs(np.corrcoef(first, whole(noisy, **change)[:, 0])[0, 1]) < 0.4


def test_parts_have_random_numbers_of_their_own() -> None:
    drawn = [generator(*key).random() for key in ((0, "a", 1), (0, "b", 1), (0, "a", 2), (1, "a", 1), (0, "a", 1, 0))]
    assert len(set(drawn)) == 5
    assert generator(0, "a", 1).random() == drawn[0]


def test_only_the_states_depend_on_the_label() -> None:
    world = World(Design(effect=0.0))
    assert np.array_equal(whole(world, label=0), whole(world, label=1))


def test_states_do_not_depend_on_the_rate() -> None:
    slow, fast = (World().trial(0, 0, 0, TEN_TWENTY_19, rate, 20.0).states for rate in (250.0, 1000.0))
    assert len(fast) == 20_000
    assert np.array_equal(slow, fast[::4])


def test_the_field_is_the_states_map_and_vanishes_between_states() -> None:
    made = World(Design(eeg=CLEAN)).trial(0, 0, 0, TEN_TWENTY_19, 500.0, 30.0)
    data, states = (np.concatenate(parts) for parts in zip(*made.blocks(), strict=True))
    gfp = data.std(axis=1)
    data, own = referenced(data), referenced(made.head.maps)[states]
    along = np.abs(np.einsum("tc,tc->t", data, own)) / 19
    assert along == pytest.approx(gfp)
    changes = np.flatnonzero(states[1:] != states[:-1])
    assert np.median(gfp[changes]) < 0.2 * np.median(gfp)
    assert np.sqrt((gfp**2).mean()) == pytest.approx(9.0, rel=0.2)
    hz, power = welch(data, 500.0, nperseg=1000, axis=0)
    assert 7 < hz[power.mean(axis=1).argmax()] < 13


def test_a_session_says_what_happens_when() -> None:
    far = Design(effect=3.0, slow_depth=0.0)
    made = World(far, 1).session(0, [(20.0, None), (60.0, 0), (60.0, 1)], TEN_TWENTY_19, 200.0)
    assert made.truth == (Interval(0, 20, None), Interval(20, 80, 0), Interval(80, 140, 1))
    assert made.n_samples == 28_000
    states = made.states

    def turn(start: int, stop: int) -> float:
        came = states[start:stop][np.append(True, np.diff(states[start:stop]) != 0)]
        ahead = np.diff(came) % 4
        return float(np.mean(ahead == 1) - np.mean(ahead == 3))

    assert turn(4000, 16_000) < -0.15
    assert turn(16_000, 28_000) > 0.15


def test_groups_are_kept_where_the_label_is_the_persons() -> None:
    world = World(Design(labels="subject"))
    world.trial(0, 1, 0, TEN_TWENTY_19, 250.0, 1.0)
    world.session(0, [(1.0, None), (1.0, 1)], TEN_TWENTY_19, 250.0)
    with pytest.raises(ConfigError, match="subject 0 is of group 1"):
        world.trial(0, 0, 1, TEN_TWENTY_19, 250.0, 1.0)
    World(Design(labels="trial")).trial(0, 1, 0, TEN_TWENTY_19, 250.0, 1.0)


def test_hum_drift_and_blinks_are_there() -> None:
    def power_of(**look: float) -> tuple[FloatArray, FloatArray]:
        data = whole(World(Design(eeg=replace(CLEAN, amplitude_uv=1e-6, **look))), seconds=60.0)
        return welch(data, 250.0, nperseg=1000, axis=0)

    hz, power = power_of(line_uv=3.0)
    assert hz[power.mean(axis=1).argmax()] == 50.0
    assert np.ptp(np.sqrt(power[200])) > 0.1 * np.sqrt(power[200]).mean()  # each channel its own
    hz, power = power_of(drift_uv=15.0)
    assert power[hz < 0.5].sum() > 20 * power[hz > 2].sum()
    blinks = whole(World(Design(eeg=replace(CLEAN, amplitude_uv=1e-6, blinks_per_minute=30))), seconds=60.0)
    assert 30 < blinks[:, 0].max() < 250
    assert np.abs(blinks[:, 17]).max() < 0.3 * blinks[:, 0].max()  # O1


def test_a_bad_electrode_loses_contact_now_and_then_and_is_noticed() -> None:
    made = World(Design(eeg=Appearance(bad_electrode=1.0))).trial(0, 0, 0, TEN_TWENTY_19, 250.0, 120.0)
    quality = Quality(QualitySettings())
    source = made.source()
    quality.open(source.info)
    for chunk in source.chunks():
        quality.process(chunk)
    ((_, share),) = quality.bad_share().items()
    assert 0.02 < share < 0.5
    fine = World(Design(eeg=Appearance(bad_electrode=0.0))).trial(0, 0, 0, TEN_TWENTY_19, 250.0, 120.0).source()
    quality = Quality(QualitySettings())
    quality.open(fine.info)
    for chunk in fine.chunks():
        quality.process(chunk)
    assert not quality.bad_share()


def test_memory_is_that_of_some_seconds() -> None:
    made = World().trial(0, 0, 0, TEN_TWENTY_19, 500.0, 300.0)
    tracemalloc.start()
    n = sum(len(data) for data in made.chunks())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n == 150_000
    assert peak < 0.2 * n * 19 * 8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seconds": 0.0}, "longer than 0 s"),
        ({"seconds": float("nan")}, "longer than 0 s"),
        ({"rate_hz": -1.0}, "rate_hz is -1"),
        ({"seconds": 1e-4}, "no sample"),
        ({"label": 2}, "label 2 is none"),
        ({"subject": -1}, "counted from 0; got -1"),
    ],
)
def test_what_cannot_be_recorded_is_refused(change: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        whole(World(), **change)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ConfigError, match="counted from 0"):
        World(seed=-1)
