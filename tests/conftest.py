"""Shared fixtures: a seeded generator, the real data's folder, and a guard against threads that outlive a test."""

import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell makes what it starts in the background ignore Ctrl-C, and the commands under test would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests of files with `from tests import lsl` as live, so that none is forgotten, but for the patient ones."""
    streams = sys.modules.get("tests.lsl")
    for item in items:
        uses_lsl = isinstance(item, pytest.Function) and streams and getattr(item.module, "lsl", None) is streams
        if uses_lsl and not item.get_closest_marker("patient"):
            item.add_marker("live")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240229)


@pytest.fixture(scope="session")
def data() -> Path:
    """Folder of real EEG beside the project."""
    if not DATA.is_dir():
        pytest.skip(f"real recordings are not at {DATA}")
    return DATA


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what commands remember, such as audits, out of the user's cache."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def no_leaked_threads() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    leaked = [thread.name for thread in set(threading.enumerate()) - before if thread.is_alive()]
    assert not leaked, f"the test left threads behind: {leaked}"
