"""What the commands share: their options, and how errors become messages and exit codes."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from rtbrain.errors import INTERRUPTED, INTERRUPTED_SAID, ConfigError, RtbrainError, SourceError, perhaps

if TYPE_CHECKING:
    from collections.abc import Callable

    from rtbrain.pipeline import Recipe
    from rtbrain.security import ClientKeys


class Choice(click.Choice[str]):
    """As click's, and a mistake is answered with the choice that was probably meant."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        """Return what is wrong with a value."""
        said = super().get_invalid_choice_message(value, ctx)
        return f"{said.removesuffix('.')}{perhaps(str(value), self.choices)}."


PATH = click.Path(path_type=Path)
UNIT = click.option(
    "--unit",
    type=Choice(["V", "mV", "uV", "nV"]),
    help="What the stored numbers are, if the file errs or is silent.",
)
STREAM = click.option("--stream", help="Name or id of the stream to take from an XDF file with several.")
OUTPUT_PORT = 5556
"""Where the decoder publishes unless told otherwise."""
ENDPOINT = f"tcp://127.0.0.1:{OUTPUT_PORT}"
DASHBOARD_PORT = 5006
SEED = click.option("--seed", type=click.IntRange(0), default=0, help="Of everything that is drawn at random.")
EXTRAS = {
    "mne": "files",
    "pyxdf": "files",
    "pycrostates": "files",
    "matplotlib": "files",
    "sklearn": "train",
    "joblib": "train",
    "torch": "train",
    "onnx": "train",
    "bokeh": "dashboard",
}
"""Which extra of rtbrain brings a package."""
_NO_LEAVE = "choose another folder, or change its permissions"
_NO_SPACE = "free some space, or choose another disk"
REMEDIES = {
    errno.EACCES: _NO_LEAVE,
    errno.EPERM: _NO_LEAVE,
    errno.EROFS: "choose a folder on a disk that is not read-only",
    errno.ENOSPC: _NO_SPACE,
    errno.EDQUOT: _NO_SPACE,
}
"""What to do about errors of the system that a traceback would not explain better."""


class Group(click.Group):
    """A group that reports rtbrain's own errors in one line instead of a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except RtbrainError as error:
            _fail(str(error), error.exit_code)
        except KeyboardInterrupt:
            _fail(INTERRUPTED_SAID, INTERRUPTED)
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package not in EXTRAS:
                raise
            _fail(f"this needs {package}; install it by: pip install 'rtbrain[{EXTRAS[package]}]'", 2)
        except RuntimeError as error:
            if "liblsl" not in str(error) and "LSL binary" not in str(error):  # pylsl raises nothing more special
                raise
            _fail(f"{str(error).splitlines()[0]} Install liblsl; docs/deployment.md says how", 2)
        except OSError as error:
            if error.errno not in REMEDIES:
                raise
            _fail(f"{error.filename} cannot be written or read: {error.strerror}; {REMEDIES[error.errno]}", 2)


def _fail(message: str, exit_code: int) -> NoReturn:
    click.echo(f"rtbrain: {message}", err=True)
    sys.exit(exit_code)


def expanded(paths: tuple[Path, ...]) -> list[Path]:
    """Replace folders by the recordings in them."""
    from rtbrain.sources.recording import find_recordings

    found = [file for path in paths for file in (find_recordings(path) if path.is_dir() else [path])]
    if not found:
        raise SourceError(f"there is no recording in {', '.join(map(str, paths))}")
    return found


def check_folder(folder: Path) -> None:
    """Refuse early a folder that could not be written at the end of a long computation."""
    from tempfile import TemporaryFile

    above = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    try:
        with TemporaryFile(dir=above):  # permissions alone do not tell of a disk that is read-only
            pass
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be made or written: {above} is no folder that you may write to ({error.strerror}); "
            f"{REMEDIES.get(error.errno or 0, _NO_LEAVE)}"
        ) from error


def check_file(path: Path) -> None:
    """Refuse early a file that could not be written at the end of a long computation."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ConfigError(f"the folder of {path} does not exist; make it, or name another file")
    check_folder(folder)


def recipe_from(path: Path | None) -> Recipe:
    """Read a recipe; without a file, the default one."""
    from rtbrain.config import load_yaml
    from rtbrain.pipeline import Recipe

    return Recipe() if path is None else Recipe.from_dict(load_yaml(path), str(path))


def number_range(text: str) -> tuple[int, ...]:
    """Read `3:12` as the numbers 3 to 12."""
    first, _, last = text.partition(":")
    if not (first.isdigit() and last.isdigit()) or not 1 <= int(first) < int(last) <= 64:
        raise ConfigError(f"--scan {text!r} is no rising range within 1 to 64 states; write for example --scan 3:12")
    return tuple(range(int(first), int(last) + 1))


def client_keys(key: Path | None, server: Path | None) -> ClientKeys | None:
    """Read the keys of a listener; None if it has none."""
    if key is None and server is None:
        return None
    if key is None or server is None:
        raise ConfigError("--key and --server belong together: your own key, and the decoder's public one")
    from rtbrain.security import load_client_keys

    return load_client_keys(key, server)


def on_signals() -> Callable[[], bool]:
    """Return a function that tells whether Ctrl-C was pressed, or the process was asked to end."""
    import signal
    from threading import Event

    stopping = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    return stopping.is_set
