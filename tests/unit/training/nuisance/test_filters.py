from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rtbrain.sources.chunking import Source
from rtbrain.training.nuisance.features import EDGES, Measured, columns, edges
from rtbrain.training.nuisance.filters import cluster, find_filters
from rtbrain.training.nuisance.spectrum import Spectrum
from rtbrain.training.trials import Trial, Value

HZ = np.arange(0, 120, 0.125)


def closed() -> Source:
    raise AssertionError("not read here")


def recording(rng: np.random.Generator, name: str, label: int, *, narrow: bool = False) -> Measured:
    """A spectrum that varies as those of people do, and falls off outside 1.5 to 33 Hz if it is narrow."""
    slope, eyes, muscle = rng.normal(8, 1), max(0.0, rng.normal(4, 3)), max(0.0, rng.normal(1, 3))
    db = -slope * np.log2(np.maximum(HZ, 0.25)) + rng.standard_normal(len(HZ))
    db += eyes * np.exp(-HZ) + muscle * np.clip((HZ - 20) / 20, 0, 1)
    if narrow:
        db -= 15 * np.log2(np.maximum(1.5 / np.maximum(HZ, 0.25), 1)) + 2 * np.maximum(HZ - 33, 0)
    spectrum = Spectrum(0.125, db)
    found: dict[str, dict[str, Value]] = {EDGES: dict(edges(spectrum))}
    return Measured(Trial(name, name, (Path(name),), 60.0, closed, label=label), 256.0, spectrum, (), found)


def test_one_filter_gives_no_second_group() -> None:
    for seed in range(30):
        rng = np.random.default_rng(seed)
        people = [recording(rng, f"s{i}", i % 2) for i in range(8 + seed)]
        found = find_filters(people, ("a", "b"))
        assert not found.several, seed
        assert found.separation > 1


@pytest.mark.parametrize("n_narrow", [3, 10, 17])
def test_two_filters_are_found_and_described(rng: np.random.Generator, n_narrow: int) -> None:
    people = [recording(rng, f"s{i}", i % 2, narrow=i < n_narrow) for i in range(24)]
    found = find_filters(people, ("a", "b"))
    wide, narrow = found.groups
    assert set(narrow.trials) == {f"s{i}" for i in range(n_narrow)}
    assert wide.response_db["45 Hz"] == 0
    assert narrow.response_db["45 Hz"] == pytest.approx(-24, abs=5)
    assert narrow.response_db["0.5 Hz"] == pytest.approx(-24, abs=5)
    assert narrow.response_db["30 Hz"] == pytest.approx(0, abs=3)
    assert narrow.by_class_db["a"]["45 Hz"] == pytest.approx(narrow.by_class_db["b"]["45 Hz"], abs=6)


def test_a_step_at_one_edge_is_found_whatever_the_other_does(rng: np.random.Generator) -> None:
    people = []
    for i in range(40):
        each, eyes = recording(rng, f"s{i}", i % 2), rng.normal(0, 8)
        low = {name: eyes + rng.normal() for name in ("0.5 Hz", "1 Hz", "1.5 Hz")}
        high = {name: rng.normal(-12.0 if i < 15 else 0.0, 1.5) for name in ("35 Hz", "40 Hz", "45 Hz")}
        people.append(replace(each, features={EDGES: {**low, **high}}))
    found = find_filters(people, ("a", "b"))
    assert [len(group.trials) for group in found.groups] == [25, 15]
    assert found.separation > 4


def test_three_filters_are_three_groups(rng: np.random.Generator) -> None:
    x = rng.normal(0, 1, (36, 2)) + np.repeat([[0, 0], [-15, 0], [-15, -20]], 12, axis=0)
    group, _ = cluster([x], np.arange(36))
    assert [len(set(part)) for part in np.split(group, 3)] == [1, 1, 1]
    assert len(set(group)) == 3


def test_few_odd_recordings_are_no_group(rng: np.random.Generator) -> None:
    x = rng.normal(0, 1, (20, 2))
    x[:2] += 30
    assert cluster([x[:20]], np.arange(20))[0].max() == 0
    assert cluster([x[:4]], np.arange(4))[0].max() == 0
    x[:8] += 30  # eight trials, of two people
    assert cluster([x], np.arange(20))[0].max() > 0
    assert cluster([x], np.arange(20) // 4)[0].max() == 0
    assert cluster([], np.arange(20))[0].tolist() == [0] * 20


def test_recordings_of_one_person_are_alike_by_themselves() -> None:
    """Twelve of each of ten people look like ten groups; yet whole people, or some of each one's, can have a filter."""
    people = np.repeat(np.arange(10), 12)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = 4 * rng.standard_normal((10, 3))[people] + 0.7 * rng.standard_normal((120, 3))
        assert cluster([x], people)[0].max() == 0, seed
    people = np.repeat(np.arange(20), 4)
    x = 3 * rng.standard_normal((20, 3))[people] + 0.7 * rng.standard_normal((80, 3))
    for narrow in (people < 6, np.arange(80) % 3 == 0):
        group, _ = cluster([x - 20 * narrow[:, None]], people)
        assert group.max() == 1
        assert len(set(group[narrow])) == 1


def test_what_is_lacking_is_said(rng: np.random.Generator) -> None:
    """Each condition in turn is the one that fails, and the words and numbers are its own."""
    everybody = np.arange(40)
    step = np.where(everybody < 20, 1.0, 0.0)[:, None]
    ten, same = np.repeat(np.arange(10), 12), np.random.default_rng(3)  # a draw that looks like two groups
    alike = 4 * same.standard_normal((10, 3))[ten] + 0.7 * same.standard_normal((120, 3))
    cases = {
        "no split has recordings of 3 or more people on both sides": (rng.normal(0, 1, (40, 1)), everybody // 20),
        ", and 4 are needed": (rng.normal(0, 1, (40, 1)), everybody),
        ", but only 3.0 dB, and 6 dB are needed": (3 * step + rng.normal(0, 0.01, (40, 1)), everybody),
        "but one filter gives as much by chance (p 0.3": (alike, ten),
    }
    for met, (words, (x, people)) in enumerate(cases.items()):
        group, first = cluster([x], people)
        assert words in first.lacking
        assert (first.met, group.max()) == (met, 0)
        if 1 <= met <= 3:
            assert f"{first.separation:.1f} standard deviations" in first.lacking
            assert (first.separation >= 4) == (met > 1)
    _, first = cluster([30 * step + rng.normal(0, 1, (40, 1))], everybody)
    assert (first.met, first.lacking) == (4, "")
    _, first = cluster([x for x, people in cases.values() if people is everybody], everybody)
    assert first.met == 2, "the split that gets furthest is told"


def test_columns_of_texts_numbers_and_what_is_missing(rng: np.random.Generator) -> None:
    people = [recording(rng, f"s{i}", 0) for i in range(4)]
    values: list[dict[str, Value]] = [
        {"site": "x", "hour": 1.0, "only": "p", "same": 5.0},
        {"site": "y", "hour": 2.0, "only": "q", "same": 5.0},
        {"site": "x", "hour": float("nan"), "only": "r", "same": 5.0},
        {"site": "y", "only": "s", "same": 5.0},
    ]
    made = [
        Measured(each.trial, 256.0, each.spectrum, (), {"header": row})
        for each, row in zip(people, values, strict=True)
    ]
    found = columns(made, "header")
    np.testing.assert_array_equal(found[:, 0], [0, 0, 1, 1])  # the hour is missing
    np.testing.assert_array_equal(found[:, 1], [1, 2, np.nan, np.nan])
    np.testing.assert_array_equal(found[:, 2:], [[1, 0], [0, 1], [1, 0], [0, 1]])
    assert columns(made, "gain").shape == (4, 0)
