import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rtbrain.errors import ConfigError, SourceError
from rtbrain.training.dataset_config import Crop, DatasetConfig, load_dataset_config
from rtbrain.training.nuisance import Audit, audit_task, load_audit, one_line, save_audit, verdict
from rtbrain.training.nuisance.audit import ALL, FILTER
from rtbrain.training.nuisance.features import EDGES, LENGTH
from rtbrain.training.trials import Found

from .planted import CONFIG, humming, narrow, people


@pytest.fixture(scope="module")
def filtered() -> Audit:
    return audit_task(CONFIG, people(plant=lambda label: narrow if label else None))


def finding(audit: Audit, group: str) -> str:
    return next(score.finding for score in audit.scores if score.group == group)


def test_a_planted_filter_is_found_named_and_described(filtered: Audit) -> None:
    assert filtered.finding == "alarm"
    assert finding(filtered, EDGES) == finding(filtered, FILTER) == "alarm"
    assert filtered.members == {"A": (10, 1), "B": (2, 11)}
    assert filtered.rule_accuracy == pytest.approx(21 / 24)
    wide, slim = filtered.filters.groups
    assert "s01_rest" in slim.trials
    assert "s00_rest" in wide.trials
    assert slim.response_db["45 Hz"] < -15
    assert abs(slim.response_db["2.5 Hz"]) < 3
    assert slim.by_class_db.keys() == {"well", "ill"}
    text = verdict(filtered)
    assert "raw accuracies on this set cannot be trusted" in text
    assert "A has 10 of 12 well and 1 of 12 ill" in text
    assert "harmonise" in text
    assert "cannot be trusted" in one_line(filtered)
    assert "majority 0.50, 24 people" in one_line(filtered)
    assert "recordings came through 2 filters" in one_line(filtered)


def test_planted_lines_are_found() -> None:
    found = audit_task(CONFIG, people(plant=lambda label: humming(5.2) if label else None))
    assert finding(found, "lines") == "alarm"
    assert found.lines.with_comb == (2, 11)
    assert found.lines.base_hz == pytest.approx((5.2, 5.2), abs=0.05)
    assert not found.filters.several
    assert "They repeat a line at 5.2 Hz (2 of 12 well and 11 of 12 ill)" in verdict(found)
    assert "no evidence of more than one recording filter" in verdict(found)


def test_a_clean_set_raises_no_alarm() -> None:
    found = audit_task(CONFIG, people())
    assert found.finding == "none"
    assert {LENGTH, "layout", "header", "floor"} <= set(found.constant)
    assert not found.filters.several
    assert found.lines.names == ()
    assert "no nuisance was found" in verdict(found)
    assert f"{found.noticeable:.2f}" in verdict(found)
    assert f"so many people show it from a balanced accuracy of {found.noticeable:.2f} on" in one_line(found)


def test_facts_of_the_files_are_seen() -> None:
    found = people(16)
    dated = tuple(
        replace(trial, facts={"header_date": f"{1 + i % 5:02d}.0{1 + 4 * (i % 2)}.09 1{i % 3}.00.00"})
        for i, trial in enumerate(found.trials)
    )
    audit = audit_task(replace(CONFIG, protocol=replace(CONFIG.protocol, folds=4)), Found(dated))
    assert finding(audit, "header") == "alarm"
    assert "header" in one_line(audit)


def test_length_counts_only_where_nothing_cuts_it() -> None:
    found = people(24)
    unequal = Found(tuple(replace(t, length_s=40.0 + 30 * (i % 2)) for i, t in enumerate(found.trials)))
    free = audit_task(CONFIG, unequal)
    assert finding(free, LENGTH) == "alarm"
    assert free.best is not None
    assert free.finding == "alarm"
    cut = audit_task(replace(CONFIG, crop=Crop(seconds=30, start_s=2)), unequal)
    assert finding(cut, LENGTH) == "alarm"
    assert LENGTH not in {score.group for score in cut.counted}
    assert cut.finding == "none"


def test_what_cannot_be_split_is_refused_before_anything_is_read() -> None:
    def unreadable() -> None:
        raise AssertionError("read")

    two = Found(tuple(replace(trial, open=unreadable) for trial in people(2).trials))
    with pytest.raises(ConfigError, match="k-fold needs at least"):
        audit_task(CONFIG, two)
    with pytest.raises(SourceError, match=r"no trial has a class of task 'group' and the crop's length, such as s01"):
        audit_task(replace(CONFIG, crop=Crop(900)), two)
    with pytest.raises(ConfigError, match="no task"):
        audit_task(CONFIG, two, "other")


def test_one_class_alone_is_refused_before_anything_is_read() -> None:
    one = Found(tuple(replace(trial, fields={"group": "P"}) for trial in people(8).trials))
    with pytest.raises(SourceError, match="all 8 usable trials of task 'group' are of class 'ill'"):
        audit_task(CONFIG, one, progress=lambda share: pytest.fail("read"))


def test_an_audit_is_kept_in_the_cache_and_a_stale_one_refused(filtered: Audit, tmp_path: Path) -> None:
    found = people(plant=lambda label: narrow if label else None)
    assert load_audit(CONFIG, tmp_path, found=found) is None
    path = save_audit(filtered, tmp_path)
    assert path.name == "planted-group.json"
    assert path.is_relative_to(os.environ["XDG_CACHE_HOME"])
    assert not list(tmp_path.iterdir())
    assert load_audit(CONFIG, tmp_path, found=found) == filtered
    for config, trials in (
        (replace(CONFIG, protocol=replace(CONFIG.protocol, seed=1)), found),
        (replace(CONFIG, crop=Crop(20)), found),
        (replace(CONFIG, options={"unit": "mV"}), found),
        (replace(CONFIG, recipe=load_dataset_config("mdd").recipe), found),
        (CONFIG, Found(tuple(replace(trial, facts={"prefilter": "none"}) for trial in found.trials))),
        (CONFIG, Found(found.trials[:-1])),
    ):
        with pytest.raises(SourceError, match="is stale"):
            load_audit(config, tmp_path, found=trials)
    path.write_text("{", encoding="utf-8")
    with pytest.raises(SourceError, match="is damaged"):
        load_audit(CONFIG, tmp_path, found=found)


def test_a_changed_recording_makes_it_stale(filtered: Audit, tmp_path: Path) -> None:
    from rtbrain.training.datasets import choose
    from rtbrain.training.nuisance.store import audit_key

    file = tmp_path / "a.edf"
    file.write_bytes(b"x")
    one = Found(tuple(replace(trial, files=(file,)) for trial in people(2).trials))
    chosen = choose(one, CONFIG.tasks["group"])
    before = audit_key(CONFIG, "group", chosen)
    assert audit_key(CONFIG, "group", chosen) == before
    os.utime(file, ns=(1, 1))
    assert audit_key(CONFIG, "group", chosen) != before


def test_a_cache_that_cannot_be_written_is_named(
    filtered: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file is in the way, as permissions would be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(SourceError, match=r"cannot be kept in .*cache.*or name another one by XDG_CACHE_HOME"):
        save_audit(filtered, tmp_path)


def test_the_figure_is_drawn(filtered: Audit, tmp_path: Path) -> None:
    from rtbrain.training.nuisance.figure import draw_audit

    draw_audit(filtered, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_no_word_of_the_figure_is_cut_off(filtered: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rtbrain.training.nuisance import figure

    drawn: list[Any] = []

    def keep(made: Any, path: Path) -> None:
        drawn.append(made)

    monkeypatch.setattr(figure, "write_figure", keep)
    figure.draw_audit(filtered, tmp_path / "a.png")
    canvas = drawn[0].canvas
    canvas.draw()
    for axis in drawn[0].axes:
        box = axis.xaxis.label.get_window_extent(canvas.get_renderer())
        assert 0 <= box.x0 < box.x1 <= drawn[0].bbox.x1
        assert box.y0 >= 0


def test_it_is_plain_data(filtered: Audit) -> None:
    from dataclasses import asdict

    assert json.loads(json.dumps(asdict(filtered), allow_nan=False))["task"] == "group"
    assert {score.group for score in filtered.scores} >= {EDGES, FILTER, ALL, "gain"}


def test_within_a_person(tmp_path: Path) -> None:
    """Rest and task of each person, the task recorded through the narrow filter."""
    trials = []
    for i, trial in enumerate(people(24, plant=lambda label: narrow if label else None).trials):
        trials.append(replace(trial, subject=f"p{i // 2:02d}"))
    config: DatasetConfig = replace(CONFIG, protocol=replace(CONFIG.protocol, folds=4))
    found = audit_task(config, Found(tuple(trials)))
    assert found.n_people == 12
    assert found.finding == "alarm"
