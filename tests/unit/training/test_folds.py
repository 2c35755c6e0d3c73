from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from rtbrain.errors import ConfigError, LeakError, SourceError
from rtbrain.sources.chunking import Source
from rtbrain.training.dataset_config import Protocol
from rtbrain.training.folds import Fold, audit, folds, groups
from rtbrain.training.trials import Trial

SPLITS = ["leave-one-subject-out", "k-fold", "leave-one-stimulus-out"]
LOSO, STIMULI = Protocol("leave-one-subject-out"), Protocol("leave-one-stimulus-out")


def closed() -> Source:
    raise AssertionError("a split must not read samples")


def trial(
    subject: str, number: int = 0, label: int | None = 0, path: Path | None = None, length_s: float = 60
) -> Trial:
    files = () if path is None else (path,)
    return Trial(subject, f"{subject}_{number}", files, length_s, closed, stimulus=f"clip{number}", label=label)


def people(n_per_class: Sequence[int], n_trials: int = 1) -> list[Trial]:
    """Subjects of one class each, such as `0-03`."""
    return [
        trial(f"{label}-{i:02d}", number, label)
        for label, n in enumerate(n_per_class)
        for i in range(n)
        for number in range(n_trials)
    ]


@dataclass(frozen=True)
class Example:
    trials: list[Trial]
    contents: dict[Path, bytes]
    same_person: list[list[str]]
    one_class_each: bool
    seed: int

    def write(self, folder: Path) -> list[Trial]:
        for path, content in self.contents.items():
            (folder / path).write_bytes(content)
        return [replace(t, files=tuple(folder / path for path in t.files)) for t in self.trials]

    def persons(self) -> list[set[str]]:
        """Sets of subjects that are one, merged by brute force."""
        by_content = defaultdict(set)
        for t in self.trials:
            by_content[self.contents[t.files[0]]].add(t.subject)
        merged: list[set[str]] = []
        for link in [*map(set, self.same_person), *by_content.values()]:
            apart = [other for other in merged if not other & link]
            merged = [*apart, link.union(*(other for other in merged if other & link))]
        return merged


@st.composite
def examples(draw: st.DrawFn) -> Example:
    n_classes, one_class_each = draw(st.integers(2, 3)), draw(st.booleans())
    one_file_each = draw(st.booleans())
    labels = st.integers(0, n_classes - 1)
    subjects = [f"s{i:02d}" for i in range(draw(st.integers(2, 30) | st.integers(15, 30)))]
    trials, contents = [], {}
    for i, subject in enumerate(subjects):
        # Turns of the classes, more often than chance, make sets that can be split at all.
        own = draw(labels | st.just(i % n_classes))
        for number in range(draw(st.integers(1, 8))):
            path = Path(f"{subject}.edf" if one_file_each else f"{subject}_{number}.edf")
            contents[path] = f"{path.stem:>8}".encode()
            trials.append(trial(subject, number, own if one_class_each else draw(labels), path))
    pairs = st.tuples(st.sampled_from(sorted(contents)), st.sampled_from(sorted(contents)))
    for copy, original in draw(st.lists(pairs, max_size=4)):
        contents[copy] = contents[original]
    same_person = draw(st.lists(st.lists(st.sampled_from(subjects), min_size=1, max_size=3), max_size=3))
    return Example(trials, contents, same_person, one_class_each, draw(st.integers(-5, 1000)))


def split(example: Example, folder: Path, name: str, k: int = 3) -> tuple[list[Trial], list[Fold]]:
    """Split a random example; no folds if it is refused, which is only right where a class has few persons."""
    trials = example.write(folder)
    protocol = Protocol(name, folds=k, seed=example.seed)  # type: ignore[arg-type]
    try:
        made = folds(trials, protocol, example.same_person)
    except ConfigError:
        event("refused")
        classes = {t.label for t in trials}
        labels_of = [{t.label for t in trials if t.subject in person} for person in example.persons()]
        pure = Counter(next(iter(labels)) for labels in labels_of if len(labels) == 1)
        assert name == "leave-one-stimulus-out" or any(pure[label] < 4 for label in classes)
        return trials, []
    event("split")
    return trials, made


random_sets = given(example=examples())
unhurried = settings(deadline=None, max_examples=25)
each_split = pytest.mark.parametrize("name", SPLITS)


@each_split
@unhurried
@random_sets
def test_nobody_and_no_recording_is_on_two_sides(
    tmp_path_factory: pytest.TempPathFactory, name: str, example: Example
) -> None:
    trials, made = split(example, tmp_path_factory.mktemp("set"), name)
    by_name = {t.name: t for t in trials}
    for fold in made:
        train, validation, test = ([by_name[n] for n in side] for side in (fold.train, fold.validation, fold.test))
        assert train
        assert validation
        assert test
        for person in example.persons():
            on = [any(t.subject in person for t in side) for side in (train, validation, test)]
            assert sum(on[:2] if name == "leave-one-stimulus-out" else on) <= 1
        contents = [{t.files[0].read_bytes() for t in side} for side in (train, validation, test)]
        assert not contents[0] & contents[1]
        if name != "leave-one-stimulus-out":
            assert not (contents[0] | contents[1]) & contents[2]
        else:
            assert not {t.stimulus for t in train + validation} & {t.stimulus for t in test}
            of_file = defaultdict(set)
            for t in trials:
                of_file[t.files[0]].add(t.stimulus)
            seen, tested = (
                {t.files[0].read_bytes() for t in side if len(of_file[t.files[0]]) == 1}
                for side in (train + validation, test)
            )
            assert not seen & tested
    for fold in made[:1] + made[-1:]:  # not all of them: each looks into all files again
        audit(fold, trials, example.same_person, {"templates": fold.train, "scaling": fold.train}, 60)


@each_split
@unhurried
@random_sets
def test_every_trial_is_tested_once_and_used_in_every_fold(
    tmp_path_factory: pytest.TempPathFactory, name: str, example: Example
) -> None:
    trials, made = split(example, tmp_path_factory.mktemp("set"), name)
    names = sorted(t.name for t in trials)
    label = {t.name: t.label for t in trials}
    if made:
        assert sorted(n for fold in made for n in fold.test) == names
    for fold in made:
        assert sorted(fold.train + fold.validation + fold.test) == names
        assert {label[n] for n in fold.train} == set(label.values())
        if example.one_class_each:
            assert {label[n] for n in fold.validation} == set(label.values())


@unhurried
@given(example=examples(), k=st.integers(2, 10))
def test_folds_differ_by_at_most_one_person_of_a_class(
    tmp_path_factory: pytest.TempPathFactory, example: Example, k: int
) -> None:
    trials, made = split(example, tmp_path_factory.mktemp("set"), "k-fold", k)
    tested = {n: i for i, fold in enumerate(made) for n in fold.test}
    load: dict[int | str | None, Counter[int]] = defaultdict(Counter)
    for person in example.persons() if made else []:
        own = [t for t in trials if t.subject in person]
        counts = Counter(t.label for t in own)
        majority = min(label for label in counts if counts[label] == max(counts.values()))  # type: ignore[type-var]
        for stratum in (majority, "all"):
            load[stratum][tested[own[0].name]] += 1
    for counted in load.values():
        sizes = [counted[fold] for fold in range(len(made))]
        assert max(sizes) - min(sizes) <= 1


@each_split
@unhurried
@given(example=examples(), random=st.randoms(use_true_random=False))
def test_order_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    example: Example,
    random: "st.random.Random",  # type: ignore[name-defined]
) -> None:
    trials, made = split(example, tmp_path_factory.mktemp("set"), name)
    shuffled = random.sample(trials, len(trials))
    linked = [random.sample(names, len(names)) for names in example.same_person]
    protocol = Protocol(name, folds=3, seed=example.seed)  # type: ignore[arg-type]
    if made:
        assert folds(shuffled, protocol, random.sample(linked, len(linked))) == made


GOLDEN = [
    ("fold-01", ("0-01_0", "1-00_0", "1-01_0"), ("0-00_0", "1-04_0")),
    ("fold-02", ("0-00_0", "1-03_0", "1-04_0"), ("0-01_0", "1-00_0")),
    ("fold-03", ("0-02_0", "0-03_0", "1-02_0"), ("0-00_0", "1-04_0")),
]


def test_the_draw_is_the_same_on_every_machine() -> None:
    # Sets of names are walked in another order in every Python process: a split that hangs on it fails here, at times.
    made = folds(people([4, 5]), Protocol("k-fold", folds=3, seed=7))
    assert [(fold.name, fold.test, fold.validation) for fold in made] == GOLDEN


def test_the_seed_decides() -> None:
    trials = people([10, 10])
    drawn = {tuple(folds(trials, Protocol("k-fold", folds=5, seed=seed))) for seed in range(5)}
    assert len(drawn) == 5
    assert len({folds(trials, replace(LOSO, seed=seed))[0].validation for seed in range(5)}) > 1
    validators = {frozenset(fold.validation) for fold in folds(people([1, 40], 1)[1:], LOSO)}
    assert len(validators) > 30, "each fold draws its own"


def test_mixed_labels_are_spread_by_their_share() -> None:
    # Ten subjects rate one to ten of twelve clips as class 1: each pair of folds gets similar sums.
    trials = [trial(f"s{i}", clip, int(clip < i + 1)) for i in range(10) for clip in range(12)]
    made = folds(trials, Protocol("k-fold", folds=5))
    label = {t.name: t.label for t in trials}
    positives = [sum(label[n] == 1 for n in fold.test) for fold in made]
    assert sum(positives) == 55
    assert max(positives) - min(positives) <= 6
    assert all(len(fold.test) == 24 for fold in made)


@pytest.mark.parametrize(("share", "n"), [(0.01, 2), (0.2, 6), (0.5, 15), (0.99, 28)])
def test_validation_takes_its_share_of_each_class(share: float, n: int) -> None:
    for fold in folds(people([11, 21]), Protocol("k-fold", folds=16, validation_share=share)):
        taken = Counter(name[0] for name in fold.validation)
        assert taken.total() == pytest.approx(n, abs=1)
        left = Counter(name[0] for name in fold.train)
        assert min(taken["0"], taken["1"], left["0"], left["1"]) >= 1
        assert taken["0"] == pytest.approx(taken.total() / 3, abs=1)


def test_a_rare_rating_stays_in_training() -> None:
    trials = [trial(f"s{i}", clip, clip % 2) for i in range(8) for clip in range(4)]
    trials += [trial(f"s{i}", 9, 2) for i in (2, 5)]
    label = {t.name: t.label for t in trials}
    for seed in range(20):
        for fold in folds(trials, replace(LOSO, seed=seed)):
            assert {label[n] for n in fold.train} == {0, 1, 2}


def two_files(folder: Path, first: bytes, second: bytes) -> tuple[Path, Path]:
    (folder / "a.edf").write_bytes(first)
    (folder / "b.edf").write_bytes(second)
    return folder / "a.edf", folder / "b.edf"


def test_groups_join_copies_and_declared_persons_along_chains(tmp_path: Path) -> None:
    a, b = two_files(tmp_path, b"same", b"same")
    trials = [trial("s1", path=b), trial("s2"), trial("s3", path=a), trial("s4"), trial("s5")]
    assert groups(trials) == {"s1": "s1", "s2": "s2", "s3": "s1", "s4": "s4", "s5": "s5"}
    assert groups(trials, [("s4", "away"), ("s3", "away")]) == {
        "s1": "s1",
        "s2": "s2",
        "s3": "s1",
        "s4": "s1",
        "s5": "s5",
    }
    assert groups([trial("s1", path=a), trial("s2", path=a)])["s2"] == "s1", "one file of two subjects"


def test_groups_stay_apart_where_only_size_or_header_is_equal(tmp_path: Path) -> None:
    a, b = two_files(tmp_path, b"x" * 200_000 + b"1" + b"x" * 200_000, b"x" * 200_000 + b"2" + b"x" * 200_000)
    header = tmp_path / "header"
    header.write_bytes(b"header")
    trials = [replace(trial("s1"), files=(a, header)), replace(trial("s2"), files=(b, header))]
    assert groups(trials) == {"s1": "s1", "s2": "s2"}


def test_a_copy_under_two_stimuli_is_tested_with_both(tmp_path: Path) -> None:
    a, b = two_files(tmp_path, b"same", b"same")
    plain = [trial(f"s{i}", clip, clip % 2) for i in range(4) for clip in range(6)]
    paths = {"s0_0": a, "s0_2": b}
    copied = [replace(t, files=(paths[t.name],)) if t.name in paths else t for t in plain]
    assert [len(fold.test) for fold in folds(copied, STIMULI)] == [8, 4, 4, 4, 4]
    with pytest.raises(LeakError, match=r"clip2 in (train|validation) and clip0 in test .*a\.edf, .*b\.edf"):
        audit(folds(plain, STIMULI)[0], copied)
    # One recording of all stimuli is cut into trials; the copy of one is a double person, no double stimulus.
    whole = [replace(t, files=({"s0": a, "s1": b}[t.subject],)) if t.subject in ("s0", "s1") else t for t in plain]
    made = folds(whole, STIMULI)
    assert len(made) == 6
    for fold in made:
        audit(fold, whole)


def refused(trials: list[Trial], protocol: Protocol, same_person: Sequence[Sequence[str]] = ()) -> str:
    with pytest.raises(ConfigError) as caught:
        folds(trials, protocol, same_person)
    return str(caught.value)


def test_what_cannot_be_split_is_refused_with_the_reason() -> None:
    assert "needs at least 10" in refused(people([4, 5]), Protocol("k-fold"))
    assert "found 9" in refused(people([4, 5]), Protocol("k-fold"))
    everyone = [[t.subject for t in people([4, 5])]]
    assert "found 1" in refused(people([4, 5]), LOSO, everyone)
    assert "found 0" in refused([], LOSO)
    assert "found 1" in refused(people([4, 5]), STIMULI)
    assert "no label; choose a task first: x_0" in refused([*people([3, 3]), trial("x", label=None)], LOSO)
    assert "twice" in refused([*people([3, 3]), *people([1])], LOSO)
    assert "0-00_0" in refused([*people([3, 3]), *people([1])], LOSO)
    assert "fold '0-00': class number 1 of the task is on the test side only" in refused(people([1, 5]), LOSO)
    assert "class number 2 of the task, each" in refused(people([5, 2]), LOSO)
    assert "cannot both train and validate" in refused(people([2]), LOSO)
    assert "validation_share must lie between 0 and 1: 0" in refused(people([5, 5]), replace(LOSO, validation_share=0))
    assert "folds must be 2 or more: 1" in refused(people([5, 5]), Protocol("k-fold", folds=1))
    silent = [replace(t, stimulus=None) for t in people([5, 5], 2)]
    assert "'0-00_0' has no stimulus" in refused(silent, STIMULI)
    by_clip = [trial(f"s{i}", clip, clip) for i in range(5) for clip in range(3)]
    assert "fold 'clip0': class number 1 of the task is on the test side only" in refused(by_clip, STIMULI)


def test_a_lost_recording_is_refused_by_name(tmp_path: Path) -> None:
    a, b = tmp_path / "a.edf", tmp_path / "b.edf"
    b.touch()
    with pytest.raises(SourceError, match=r"a\.edf"):
        groups([trial("s1", path=a), trial("s2", path=b)])


TRIALS = people([4, 4], n_trials=3)
CLEAN = {name: folds(TRIALS, Protocol(name, folds=4)) for name in get_args(Protocol.__annotations__["split"])}


def moved(fold: Fold, name: str, side: str) -> Fold:
    return replace(fold, **{side: (*getattr(fold, side), name)})  # type: ignore[arg-type]


@each_split
def test_clean_folds_pass(name: str) -> None:
    for fold in CLEAN[name]:
        audit(fold, TRIALS)
        audit(fold, TRIALS, [["0-00", "away"]], {"templates": fold.train, "calibration": fold.validation}, 60.004)
        if name != "leave-one-stimulus-out":
            subjects = {n.split("_")[0] for n in fold.train}
            audit(fold, TRIALS, fitted_on={"scaling": subjects})


@pytest.mark.parametrize(
    ("name", "change"),
    [
        (name, change)
        for name in SPLITS
        for change in (
            lambda fold: moved(fold, fold.test[0], "train"),
            lambda fold: moved(fold, fold.test[-1], "validation"),
            lambda fold: moved(fold, fold.train[0], "validation"),
            lambda fold: moved(fold, fold.train[0], "test"),
            lambda fold: moved(fold, fold.validation[0], "train"),
            lambda fold: moved(fold, fold.validation[0], "test"),
        )
    ],
)
def test_a_subject_or_stimulus_on_two_sides_is_caught(name: str, change: Callable[[Fold], Fold]) -> None:
    for fold in CLEAN[name]:
        with pytest.raises(LeakError, match=r"count as one \(the same name\); make the folds with"):
            audit(change(fold), TRIALS)


def sides(fold: Fold) -> list[str]:
    return [side[0].split("_")[0] for side in (fold.train, fold.validation, fold.test)]


@pytest.mark.parametrize(("one", "other"), [(0, 1), (0, 2), (1, 2)])
def test_a_double_person_on_two_sides_is_caught(tmp_path: Path, one: int, other: int) -> None:
    a, b = two_files(tmp_path, b"same", b"same")
    fold = CLEAN["k-fold"][0]
    first, second = sides(fold)[one], sides(fold)[other]
    with pytest.raises(LeakError, match=rf"{first} in .* and {second} in .*same_person: {second}, {first}\)"):
        audit(fold, TRIALS, [(second, first)])
    with pytest.raises(LeakError, match=r"same_person: .*away; same_person: .*away"):
        audit(fold, TRIALS, [(first, "away"), (second, "away")])
    paths = {f"{first}_1": a, f"{second}_2": b}
    copied = [replace(t, files=(paths[t.name],)) if t.name in paths else t for t in TRIALS]
    with pytest.raises(LeakError, match=r"same bytes: .*a\.edf, .*b\.edf"):
        audit(fold, copied)


def test_where_stimuli_are_apart_a_double_person_may_not_validate() -> None:
    fold = CLEAN["leave-one-stimulus-out"][0]
    train, validation, _ = sides(fold)
    with pytest.raises(LeakError, match=f"{train} in train and {validation} in validation"):
        audit(fold, TRIALS, [(train, validation)])


def test_what_was_fitted_on_the_test_side_is_caught() -> None:
    fold = CLEAN["k-fold"][0]
    train, _, test = sides(fold)
    for bad in (test, fold.test[0]):
        with pytest.raises(LeakError, match=f"templates fitted on '{bad}', which is tested"):
            audit(fold, TRIALS, fitted_on={"scaling": [train], "templates": [train, bad]})
    with pytest.raises(LeakError, match="calibration fitted on 'away', which is tested"):
        audit(fold, TRIALS, [(test, "away")], {"calibration": {"away"}})
    with pytest.raises(LeakError, match="scaling fitted on 'sub-7', which is no subject or trial"):
        audit(fold, TRIALS, fitted_on={"scaling": ["sub-7"]})
    by_clip = CLEAN["leave-one-stimulus-out"][0]
    with pytest.raises(LeakError, match=r"which is tested \(as 'clip0'\)"):
        audit(by_clip, TRIALS, fitted_on={"templates": [sides(by_clip)[0]]})


@pytest.mark.parametrize("side", ["train", "validation", "test"])
@pytest.mark.parametrize("length_s", [59.9, 60.1, float("nan")])
def test_unequal_lengths_are_caught_where_a_crop_is_asked_for(side: str, length_s: float) -> None:
    fold = CLEAN["k-fold"][0]
    odd = getattr(fold, side)[-1]
    trials = [replace(t, length_s=length_s) if t.name == odd else t for t in TRIALS]
    audit(fold, trials)
    with pytest.raises(LeakError, match=f"trial '{odd}' lasts {length_s:g} s and the crop 60 s"):
        audit(fold, trials, crop_s=60)


def test_a_fold_of_another_set_is_caught() -> None:
    with pytest.raises(LeakError, match="'0-00_0' is not among the trials"):
        audit(CLEAN["k-fold"][0], TRIALS[1:])
    with pytest.raises(LeakError, match="25 trials have 24 names"):
        audit(CLEAN["k-fold"][0], [*TRIALS, replace(TRIALS[0], subject="other")])
