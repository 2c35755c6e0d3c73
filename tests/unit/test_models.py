"""The bundles of the repository are what its pages say they are."""

from rtbrain.decoder.bundle import load_bundle
from rtbrain.training.dataset_config import load_dataset_config
from rtbrain.training.methods import METHODS
from rtbrain.training.methods.base import with_bands
from rtbrain.training.methods.networks import BrainTokenMethod
from tests.conftest import ROOT


def test_the_model_of_real_eeg_is_the_method_that_was_evaluated() -> None:
    bundle, config, method = load_bundle(ROOT / "models" / "mdd-ec"), load_dataset_config("mdd"), METHODS["rtbrain"]
    assert isinstance(method, BrainTokenMethod)
    assert method.need.several_bands
    bands = with_bands(config.recipe).bands
    assert [band["name"] for band in bundle.templates.recipe["bands"]] == [band.name for band in bands]
    assert [len(maps) for maps in bundle.templates.maps] == [method.need.n_states] * len(bands)
    assert bundle.context_s == config.training.context_s
    assert bundle.provenance["preset"] == method.preset
