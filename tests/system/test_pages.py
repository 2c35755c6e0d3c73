"""The pages of docs/ tell the truth: commands and Python run as they are typed, links lead somewhere."""

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.pages import PAGES, README, blocks, fill, run_commands, run_python

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("lab"))


@pytest.mark.timeout(600)
def test_the_page_on_recordings(lab: Path) -> None:
    run_commands(lab, PAGES["recordings.md"])
    first, second = (lab / name for name in ("first.tsv", "again.tsv"))
    assert [line.split("\t")[:6] for line in first.read_text().splitlines()] == [
        line.split("\t")[:6] for line in second.read_text().splitlines()
    ]
    (chain,) = blocks(PAGES["recordings.md"], "python")
    assert "Tokens(" in run_python(lab, "folder, file = Path('rest-templates'), Path('session.edf')", chain)


@pytest.mark.timeout(600)
def test_the_page_on_data_sets(lab: Path) -> None:
    run_commands(lab, PAGES["data-sets.md"])
    (corpus,) = blocks(PAGES["data-sets.md"], "python")
    told = run_python(lab, "root, cache = 'simulated/mdd', Path('mdd-tokens')", corpus)
    assert told.count("H S") == told.count("MDD S") == 10


def test_files_and_links_exist() -> None:
    for folder, text in [(ROOT, README), *((ROOT / "docs", page) for page in PAGES.values())]:
        links = [target for target in re.findall(r"\]\(([^)#]+)\)", text) if not target.startswith("http")]
        paths = re.findall(r"`((?:configs|docs|tests|tools|rtbrain)/[\w./-]*)`", text)
        assert not [target for target in links if not (folder / target).exists()]
        assert not [target for target in paths if not (ROOT / target).exists()]


def test_default_recipe_is_written_out() -> None:
    from rtbrain.config import load_yaml
    from rtbrain.pipeline import Recipe

    values = load_yaml(ROOT / "configs" / "broad.yaml")
    assert Recipe.from_dict(values) == Recipe()
    assert set(values) == set(Recipe().to_dict())
    assert len(Recipe.from_dict(load_yaml(ROOT / "configs" / "four-bands.yaml")).bands) == 4
