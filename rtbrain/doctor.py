"""Is this machine ready to decode? Each check does the thing itself, and says in words what came of it."""

import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from platform import platform, python_version
from time import monotonic
from typing import Final, Literal
from uuid import uuid4

import pylsl

from rtbrain import __version__
from rtbrain.decoder.bundle import PARITY, Bundle, load_bundle
from rtbrain.decoder.find import SHIPPED, bundles_in, find_bundle
from rtbrain.decoder.session import load_step
from rtbrain.errors import ConfigError, RtbrainError
from rtbrain.live_state import has_parity
from rtbrain.lsl_scope import configuration_files, is_machine_scoped

Verdict = Literal["ok", "note", "bad"]

PATIENCE_S: Final = 10.0
"""How long a stream of this very process may take to be seen."""


@dataclass(frozen=True)
class Finding:
    """What a check says."""

    what: str
    verdict: Verdict
    """note: worth knowing, and no reason not to begin."""
    text: str


def check_machine(ports: dict[str, int]) -> Iterator[Finding]:
    """Check everything but bundle and stream; `ports` are those that rtbrain would use, by what for."""
    yield Finding("versions", "ok", f"rtbrain {__version__}, Python {python_version()}, {platform()}")
    number = pylsl.library_version()
    where = next((str(path) for path in configuration_files() if path.is_file()), "no configuration file")
    scope = "this machine only" if is_machine_scoped() else "the network: what is sent over LSL is not encrypted"
    yield Finding("liblsl", "ok", f"{number // 100}.{number % 100}, pylsl {version('pylsl')}; {where}; reaches {scope}")
    yield _multicast()
    for what, port in ports.items():
        yield _port(what, port)


def _multicast() -> Finding:
    """Announce a stream, find it, and read from it."""
    name = f"rtbrain-doctor-{uuid4().hex}"
    outlet = pylsl.StreamOutlet(pylsl.StreamInfo(name, "test", 1, 0.0, "double64", name))
    began_s = monotonic()
    found = pylsl.resolve_byprop("name", name, 1, PATIENCE_S)
    if not found:
        return Finding(
            "multicast",
            "bad",
            f"a stream of this program was announced and not seen within {PATIENCE_S:g} s: a firewall or a VPN blocks "
            "LSL's announcements (UDP 16571 to 16604), or lsl_api.cfg names other addresses",
        )
    found_s = monotonic() - began_s
    inlet = pylsl.StreamInlet(found[0], recover=False)
    try:
        inlet.open_stream(PATIENCE_S)
        outlet.wait_for_consumers(PATIENCE_S)
        outlet.push_sample([42.0])
        sample, _ = inlet.pull_sample(PATIENCE_S)
    except (pylsl.util.TimeoutError, pylsl.util.LostError) as error:
        sample = None
        reason = f" ({error})"
    else:
        reason = ""
    finally:
        inlet.close_stream()  # before its stream ends, which liblsl would call an error
        del inlet
    if sample != [42.0]:
        return Finding(
            "multicast",
            "bad",
            f"a stream is seen, but its data do not come through{reason}: a firewall blocks TCP 16572 to 16604",
        )
    return Finding("multicast", "ok", f"a stream of this program was found in {1000 * found_s:.0f} ms and read")


def _port(what: str, port: int) -> Finding:
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            text = f"{port} is taken ({error.strerror}): by another run, or by a program that must get another port"
            return Finding(what, "note", text)
    return Finding(what, "ok", f"port {port} is free")


def check_bundle(given: str | None) -> tuple[list[Finding], Bundle | None]:
    """Check the bundle that is meant: found, whole, certified; and where its model runs faster."""
    try:
        bundle = load_bundle(find_bundle(given))
    except ConfigError as error:
        if given is not None:
            return [Finding("bundle", "bad", str(error))], None
        # Nobody asked for a certain one; the shipped one tells how fast this machine is.
        shipped = next(iter(bundles_in(SHIPPED).values()), None)
        note = Finding("bundle", "note", str(error))
        return ([note] if shipped is None else [note, _providers(load_bundle(shipped))]), None
    except RtbrainError as error:
        return [Finding("bundle", "bad", str(error))], None
    people = bundle.provenance.get("subjects", {})
    found = [
        Finding(
            "bundle",
            "ok",
            f"{bundle.folder}: {bundle.name} ({', '.join(bundle.classes)}), all hashes are right; "
            f"{len(bundle.templates.channels)} channels, context {bundle.context_s:g} s"
            + (f", trained on {len(people['train'])} people" if "train" in people else ""),
        )
    ]
    if has_parity(bundle):
        found.append(Finding("certificate", "ok", f"{PARITY} says that its live path equals the offline one"))
    else:
        found.append(
            Finding("certificate", "note", f"there is none for it; make one: rtbrain parity {bundle.folder} FILE")
        )
    return [*found, _providers(bundle)], bundle


def _providers(bundle: Bundle) -> Finding:
    """Run the model wherever it can run; a provider that is only listed does not count."""
    import onnxruntime

    model = load_step(bundle.step, "auto")
    times = ", ".join(f"{name} {ms:.2f} ms a step" for name, ms in model.step_ms.items())
    listed = [name.removesuffix("ExecutionProvider") for name in onnxruntime.get_available_providers()]
    real = [name.removesuffix("ExecutionProvider") for name in model.session.get_providers()]
    text = f"ONNX Runtime {onnxruntime.__version__}: {times}; {model.device} is taken, by {', '.join(real)}"
    if len(model.step_ms) == 1 and "CUDA" in listed:
        text += "; CUDA is listed, but cannot be used here (no GPU, or no CUDA and cuDNN libraries)"
    return Finding("model", "ok", text)
