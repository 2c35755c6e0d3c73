"""Which bundle is meant: a folder, or the name of one in ./models or of one that ships with rtbrain."""

import os
from pathlib import Path
from typing import Final

from rtbrain.decoder.bundle import CARD
from rtbrain.errors import ConfigError, perhaps

VARIABLE: Final = "RTBRAIN_BUNDLE"

_PACKAGE = Path(__file__).resolve().parents[1]
SHIPPED: Final = _PACKAGE / "models" if (_PACKAGE / "models").is_dir() else _PACKAGE.parent / "models"
"""Within the installed package, or beside it in the repository."""


def bundles_in(folder: Path) -> dict[str, Path]:
    """Return the bundles in a folder by name."""
    found = sorted(path.parent for path in folder.glob(f"*/{CARD}"))
    return {path.name: path for path in found if not path.name.startswith(".")}


def find_bundle(given: str | Path | None = None, models: Path = Path("models")) -> Path:
    """Return the folder that is meant: the given one, else that of RTBRAIN_BUNDLE, else the only one in `models`.

    What is given is a folder, else a name in `models`, else the name of a shipped bundle.

    Raises
    ------
    ConfigError
        There is no such bundle, or nothing says which one is meant; the message lists those that there are.
    """
    given = given or os.environ.get(VARIABLE) or None
    own, shipped = bundles_in(models), bundles_in(SHIPPED)
    if given is None:
        if len(own) == 1:
            return next(iter(own.values()))
        raise ConfigError(
            f"which bundle is to be used? {_listed(own, shipped, models)}; name one by --bundle or by {VARIABLE}, or "
            "make one by `rtbrain train`"
        )
    path, known = Path(given), shipped | own
    if (path / CARD).is_file():
        return path
    if str(given) in known:
        return known[str(given)]
    if path.exists():
        return path  # loading it says what is wrong with it
    there = _listed(own, shipped, models)
    raise ConfigError(f"there is no bundle {str(given)!r}{perhaps(path.name, known)}; {there}")


def _listed(own: dict[str, Path], shipped: dict[str, Path], models: Path) -> str:
    others = [name for name, path in shipped.items() if name not in own or own[name].resolve() != path]
    there = f"{models} holds {', '.join(own)}" if own else f"there is none in the folder {models}"
    return f"{there}; this installation of rtbrain has {', '.join(others)}" if others else there
