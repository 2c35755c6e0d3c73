import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
sys.path.insert(0, str(TESTS))  # for xdf_writer, which other tests use as well


@pytest.fixture
def shared_data() -> Path:
    """Real recordings that are not part of the project."""
    folder = TESTS.parent.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the real recordings are not here ({folder})")
    return folder
