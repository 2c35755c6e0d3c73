"""How far LSL streams reach: LSL has no encryption, so what is not meant for the network stays on this machine."""

import os
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from pathlib import Path
from typing import Final

MACHINE_ONLY: Final = "[multicast]\nResolveScope = machine\n[log]\nlevel = -3\n"
"""A liblsl configuration under which nobody on the network is told of a stream.

It keeps liblsl quiet but for what is fatal: when a source goes it prints hundreds of lines about its attempts to find
it again, which `stream` tells in one.
Who knows the port could still connect: a firewall, not LSL, can prevent that."""

QUIET: Final = "[log]\nlevel = -1\n"
"""Warnings and errors only: liblsl otherwise tells where its configuration comes from at every start."""

_state = {"kept": False}


def configuration_files() -> list[Path]:
    """Return the files from which liblsl takes its configuration, the first that exists being the one."""
    named = os.environ.get("LSLAPICFG")
    usual = [Path("lsl_api.cfg"), Path.home() / "lsl_api" / "lsl_api.cfg", Path("/etc/lsl_api/lsl_api.cfg")]
    return [Path(named), *usual] if named else usual


def keep_on_this_machine() -> bool:
    """Limit LSL to this machine, unless the lab has a configuration of its own; to be called before any other LSL call.

    Returns
    -------
    bool
        Whether streams stay on this machine.
    """
    if not any(path.is_file() for path in configuration_files()):
        import pylsl

        pylsl.set_config_content(MACHINE_ONLY)
        _state["kept"] = True
    return is_machine_scoped()


def keep_quiet() -> None:
    """Let liblsl tell of problems only, unless the lab has a configuration of its own; before any other LSL call."""
    if not any(path.is_file() for path in configuration_files()):
        import pylsl

        pylsl.set_config_content(QUIET)


def is_machine_scoped() -> bool:
    """Tell whether this process's streams are announced on this machine only."""
    if _state["kept"]:
        return True
    found = next((path for path in configuration_files() if path.is_file()), None)
    if found is None:
        return False
    parser = ConfigParser(strict=False, interpolation=None)
    try:
        parser.read_string(found.read_text(encoding="utf-8"))
    except (OSError, ValueError, ConfigParserError):
        return False  # liblsl falls back to its default, the whole site
    return parser.get("multicast", "ResolveScope", fallback="site").strip().lower() == "machine"
