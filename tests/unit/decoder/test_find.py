"""Which bundle is meant: folders, names, the variable, the only one; mistakes list what there is."""

import shutil
from pathlib import Path

import pytest

from rtbrain.decoder import find
from rtbrain.decoder.bundle import Bundle, load_bundle
from rtbrain.decoder.find import find_bundle
from rtbrain.errors import BundleError, ConfigError
from rtbrain.live_state import has_parity
from tests.conftest import ROOT
from tests.unit.decoder.bundle_cases import make_bundle


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return make_bundle(tmp_path_factory.mktemp("models") / "small")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder without models, and a place with shipped ones that is empty."""
    monkeypatch.delenv("RTBRAIN_BUNDLE", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(find, "SHIPPED", tmp_path / "shipped")
    return tmp_path


def test_without_a_name_it_is_the_variables_or_the_only_one(
    made: Bundle, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        ConfigError, match="there is none in the folder models; name one by --bundle or by RTBRAIN_BUNDLE"
    ) as error:
        find_bundle()
    assert error.value.exit_code == 2
    shutil.copytree(made.folder, folder / "models" / "one")
    (folder / "models" / ".123-two").mkdir()
    (folder / "models" / ".123-two" / "bundle.json").write_text("being written")
    assert find_bundle() == Path("models/one")
    shutil.copytree(made.folder, folder / "models" / "two")
    shutil.copytree(made.folder, folder / "shipped" / "demo")
    with pytest.raises(ConfigError, match="models holds one, two; this installation of rtbrain has demo; name one"):
        find_bundle()
    monkeypatch.setenv("RTBRAIN_BUNDLE", "two")
    assert find_bundle() == Path("models/two")
    assert find_bundle("one") == Path("models/one")


def test_a_folder_comes_before_a_name_in_models_before_a_shipped_one(made: Bundle, folder: Path) -> None:
    shutil.copytree(made.folder, folder / "shipped" / "demo")
    assert find_bundle("demo") == folder / "shipped" / "demo"
    shutil.copytree(made.folder, folder / "models" / "demo")
    assert find_bundle("demo") == Path("models/demo")
    (folder / "demo").mkdir()  # of that name, but no bundle
    assert find_bundle("demo") == Path("models/demo")
    shutil.copytree(made.folder, folder / "demo", dirs_exist_ok=True)
    assert find_bundle(Path("demo")) == Path("demo")


def test_mistakes_name_the_nearest(made: Bundle, folder: Path) -> None:
    shutil.copytree(made.folder, folder / "models" / "neurolong")
    shutil.copytree(made.folder, folder / "shipped" / "demo")
    with pytest.raises(
        ConfigError,
        match=r"no bundle 'neurolnog', perhaps 'neurolong' is meant; models holds neurolong; this .* has demo",
    ):
        find_bundle("neurolnog")
    with pytest.raises(ConfigError, match="perhaps 'neurolong' is meant"):
        find_bundle("elsewhere/neurolongs")
    with pytest.raises(ConfigError) as error:
        find_bundle("quite-other")
    assert "perhaps" not in str(error.value)
    with pytest.raises(BundleError, match="is no bundle"):
        load_bundle(find_bundle(folder))


@pytest.mark.parametrize("name", ["neurolong-demo", "mdd-ec"])
def test_the_shipped_bundles_are_whole_small_and_certified(name: str) -> None:
    bundle = load_bundle(find_bundle(ROOT / "models" / name))
    assert has_parity(bundle)
    assert bundle.name == name
    assert sum(path.stat().st_size for path in bundle.folder.iterdir()) < 2_000_000
    assert ("Mumtaz" in bundle.licence and "CC BY 4.0" in bundle.licence) == (name == "mdd-ec")
    assert f"`{name}`" in (ROOT / "models" / "README.md").read_text()
