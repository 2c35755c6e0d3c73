"""The commands `stream`, the live decoder, and `watch`, a view of what it publishes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtbrain.cli_options import ENDPOINT, PATH, Choice, client_keys, on_signals
from rtbrain.errors import ConfigError

if TYPE_CHECKING:
    from rtbrain.decoder.session import Device

FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command()
@click.option("--lsl", "wanted", required=True, metavar="NAME", help="Name, type or source id of the LSL stream.")
@click.option(
    "--bundle", "given", help="Trained model: folder, or name.  [default: RTBRAIN_BUNDLE, or the only one in models]"
)
@click.option("--zmq", "endpoint", default=ENDPOINT, help="Where to publish; port 0 takes a free one.")
@click.option("--lsl-out", metavar="NAME", help="Publish decisions as an LSL stream of this name, too.")
@click.option("--markers", metavar="NAME", help="Name, type or source id of a marker stream.")
@click.option("--reset-on", metavar="MARKER", multiple=True, help="Marker that begins a new context; `*` matches all.")
@click.option("--log", type=FOLDER, help="Folder for the complete record of the session.")
@click.option("--device", type=Choice(["auto", "cpu", "cuda"]), default="auto", help="Where the model runs.")
@click.option("--unit", type=Choice(["V", "mV", "uV", "nV"]), help="What the numbers are, if the stream errs.")
@click.option("--key", type=PATH, help="The decoder's .key_secret file: encrypts, and lets only --clients in.")
@click.option("--clients", type=FOLDER, help="Folder with the .key file of each client that may listen.")
@click.option("--local", is_flag=True, help="Limit LSL to this machine.")
@click.option("--insecure", is_flag=True, help="Let output leave this machine without keys.")
def stream(
    wanted: str,
    given: str | None,
    endpoint: str,
    lsl_out: str | None,
    markers: str | None,
    reset_on: tuple[str, ...],
    log: Path | None,
    device: Device,
    unit: str | None,
    key: Path | None,
    clients: Path | None,
    local: bool,
    insecure: bool,
) -> None:
    """Decode a live LSL stream and publish the state over ZeroMQ, until Ctrl-C.

    Example: rtbrain stream --lsl EEG --bundle models/rest --log logs/today
    """
    if reset_on and markers is None:
        raise ConfigError("--reset-on needs --markers NAME, the stream that the markers come from")
    if (key is None) != (clients is None):
        raise ConfigError("--key and --clients belong together: the decoder's own key, and those who may listen")
    from rtbrain.decoder.bundle import load_bundle
    from rtbrain.decoder.find import find_bundle
    from rtbrain.lsl_scope import keep_on_this_machine, keep_quiet
    from rtbrain.security import load_server_keys

    bundle = load_bundle(find_bundle(given))
    keys = None if key is None or clients is None else load_server_keys(key, clients)
    if local:
        keep_on_this_machine()
    else:
        keep_quiet()
    from rtbrain.decoder.session import load_step
    from rtbrain.live import Live, LiveSettings
    from rtbrain.live_outputs import open_outputs
    from rtbrain.live_state import has_parity

    stop = on_signals()
    with open_outputs(endpoint, bundle.classes, keys=keys, lsl_name=lsl_out, log=log, insecure=insecure) as outputs:
        _say(f"publishing on {outputs.zmq.endpoint}")
        model = load_step(bundle.step, device)
        times = ", ".join(f"{name} {ms:.2f} ms" for name, ms in model.step_ms.items())
        _say(f"bundle {bundle.name} ({', '.join(bundle.classes)}) runs on {model.device}; a step takes: {times}")
        if model.no_gpu:
            _say(f"the CPU computes: {model.no_gpu}")
        if not has_parity(bundle):
            _say("warning: no certificate says that this bundle's live path equals the offline one")
        Live(bundle, model, outputs, LiveSettings(wanted, unit, markers, reset_on), stop, _say).run()
    left = outputs.log_meta()
    if left.dropped:
        _say(f"warning: the session log lacks {left.dropped} message(s): {left.trouble or 'the disk was too slow'}")
    _say("stopped")


@click.command()
@click.option("--zmq", "endpoint", default=ENDPOINT, help="Where the decoder publishes.")
@click.option("--key", type=PATH, help="This client's .key_secret file.")
@click.option("--server", type=PATH, help="The decoder's .key file.")
@click.option("--seconds", type=click.FloatRange(0), help="Stop after so long.  [default: at Ctrl-C]")
@click.option("--plain", is_flag=True, help="Print lines instead of a view that is redrawn.")
def watch(endpoint: str, key: Path | None, server: Path | None, seconds: float | None, plain: bool) -> None:
    """Show what a live decoder publishes.

    Example: rtbrain watch --zmq tcp://127.0.0.1:5556
    """
    keys = client_keys(key, server)
    from rtbrain.watching import watch_output

    watch_output(endpoint, keys, on_signals(), seconds, plain=plain)


def _say(text: str) -> None:
    click.echo(text)  # flushes, so that whoever reads the output sees it at once
