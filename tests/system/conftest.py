"""What tests of whole programs share."""

import pytest

from rtbrain.decoder.bundle import Bundle
from tests.bundles import make_bundle


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """Return a small bundle for synthetic EEG; tests only read it."""
    return make_bundle(tmp_path_factory.mktemp("models") / "small")
