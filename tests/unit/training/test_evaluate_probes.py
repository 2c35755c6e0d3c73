"""Probes within an evaluation: who listens to the recording filter flips, and the table says so."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from rtbrain.errors import ConfigError
from rtbrain.training import nuisance
from rtbrain.training.corpus_cache import text_hash
from rtbrain.training.dataset_config import Crop, Protocol
from rtbrain.training.evaluate import _PROBING, evaluate, fold_jobs, plan
from rtbrain.training.evaluate_table import tabulate
from rtbrain.training.methods import METHODS, methods_named
from rtbrain.training.nuisance import audit_task

from .nuisance.planted import CONFIG, SECONDS, Change, narrow, people

SET = replace(CONFIG, protocol=Protocol("k-fold", folds=3), crop=Crop(SECONDS))


def by_class(label: int) -> Change | None:
    return narrow if label else None


@pytest.mark.parametrize(("first", "key"), [("probes", _PROBING), ("features", METHODS["nuisance"].program)])
def test_all_that_probes_and_nuisance_import_is_in_their_key(first: str, key: tuple[str, ...]) -> None:
    folder, reached = Path(nuisance.__file__).parent, {f"{first}.py"}
    for _ in range(5):  # what is imported imports more
        texts = "".join((folder / name).read_text(encoding="utf-8") for name in reached)
        reached |= {f"{name}.py" for name in re.findall(r"from rtbrain\.training\.nuisance\.(\w+) import", texts)}
    assert {f"training/nuisance/{name}" for name in reached} == {name for name in key if "nuisance/" in name}


def test_who_listens_to_the_filter_flips_and_the_table_says_so(tmp_path: Path) -> None:
    found = people(18, by_class)
    planned = plan(SET, found, methods_named(["majority", "band-power"]), n_seeds=2, probed=["band-power"])
    answers = evaluate(planned, found, tmp_path)
    probed = [each for each in answers if each.probes]
    assert {(each.method, each.seed) for each in probed} == {("band-power", 0)}, "with the first seed, the one named"
    for each in probed:
        for probe in each.probes:
            assert set(probe.trials) <= set(each.trials)
            assert probe.what.startswith("filter")
    rows = {row.method: row for row in tabulate(planned, answers, audit_task(SET, found)).rows}
    flips, asked = rows["band-power"].probes["filters"]
    assert asked == 18, "everybody is given the other filter once"
    assert flips > 9, "half of the answers and more were about the filter"
    assert rows["majority"].probes == {}
    assert "lines" not in rows["band-power"].probes, "nobody has lines to give"
    (why,) = rows["band-power"].not_probed
    assert why.startswith("lines not exchanged in 3 folds (fold-01: 0 training recordings have")
    assert rows["majority"].not_probed == ()
    assert evaluate(planned, found, tmp_path) == answers, "probes are kept with the answers"


def test_other_probes_ask_for_new_answers_of_those_who_are_probed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = plan(SET, people(12), methods_named(["majority", "band-power"]), n_seeds=2, probed=["band-power"])

    def keys() -> dict[tuple[str, int], set[str]]:
        found: dict[tuple[str, int], set[str]] = {}
        for job in fold_jobs(planned, tmp_path)[1]:
            for method, slot in job.todo:
                found.setdefault((method.name, job.seed), set()).add(slot.key)
        return found

    before, read = keys(), Path.read_bytes
    for name in ("probes.py", "features.py", "spectrum.py"):
        text_hash.cache_clear()
        with monkeypatch.context() as changed:
            changed.setattr(Path, "read_bytes", lambda path, own=name: read(path) + b"#" * (path.name == own))
            after = keys()
        assert {asked for asked in before if after[asked].isdisjoint(before[asked])} == {("band-power", 0)}, name
        assert {asked for asked in before if after[asked] == before[asked]} == set(before) - {("band-power", 0)}
    text_hash.cache_clear()
    assert keys() == before


def test_methods_that_cost_much_are_run_once(tmp_path: Path) -> None:
    found = people(12)
    methods = methods_named(["majority", "nuisance"])
    planned = plan(SET, found, methods, n_seeds=2, once=["nuisance"])
    answers = evaluate(planned, found, tmp_path)
    assert {(each.method, each.seed) for each in answers} == {("majority", 0), ("majority", 1), ("nuisance", 0)}
    rows = {row.method: row.n_seeds for row in tabulate(planned, answers, audit_task(SET, found)).rows}
    assert rows == {"majority": 2, "nuisance": 1}
    with pytest.raises(ConfigError, match="rtbrain cannot be probed"):
        plan(SET, found, methods, probed=["rtbrain"])
    stimuli = replace(SET, protocol=Protocol("leave-one-stimulus-out"))
    with pytest.raises(ConfigError, match="same people on both sides"):
        plan(stimuli, found, methods, probed=["nuisance"])
