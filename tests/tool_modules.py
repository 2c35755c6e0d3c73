"""The command-line tools of `tools/`, which have no `.py` in their names, as modules."""

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType

from tests.conftest import ROOT


def load_tool(name: str) -> ModuleType:
    """Import a tool by its file's name."""
    loader = SourceFileLoader(f"{name}_tool", str(ROOT / "tools" / name))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[loader.name] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module
