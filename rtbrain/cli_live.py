"""The commands around the live decoder: `replay`, `streams` and `keys`."""

from __future__ import annotations

from pathlib import Path

import click

from rtbrain.cli_options import PATH, STREAM, UNIT, on_signals


@click.command()
@click.argument("file", type=PATH)
@click.option("--name", default="EEG", help="Name of the LSL stream; the markers' is NAME-markers.")
@click.option("--speed", type=click.FloatRange(0.01, 1000), default=1.0, help="Seconds of signal per second.")
@click.option("--loop", is_flag=True, help="Begin again at the end, until stopped.")
@click.option("--chunk-ms", type=click.FloatRange(0.1, 10_000), default=10.0, help="Signal sent at a time.")
@click.option("--start", "start_s", type=click.FloatRange(0), default=0.0, help="First second to send.")
@click.option("--stop", "stop_s", type=click.FloatRange(0), help="Second to stop at.  [default: the end]")
@click.option("--faults", "script", type=PATH, help="YAML script of what goes wrong; see configs/faults.yaml.")
@click.option("--wait", is_flag=True, help="Begin once somebody listens.")
@click.option(
    "--source-id", default="", help="Id of the stream.  [default: one for this name and machine, its own if others run]"
)
@click.option("--network", is_flag=True, help="Let other machines see the stream, which LSL sends in clear.")
@UNIT
@STREAM
def replay(
    file: Path,
    name: str,
    speed: float,
    loop: bool,
    chunk_ms: float,
    start_s: float,
    stop_s: float | None,
    script: Path | None,
    wait: bool,
    source_id: str,
    network: bool,
    unit: str | None,
    stream: str | None,
) -> None:
    """Send a recording over LSL as an amplifier would, with its markers, gaps and time stamps.

    Example: rtbrain replay session.edf --name EEG --loop
    """
    from rtbrain.faults import Faults, load_faults
    from rtbrain.lsl_scope import keep_on_this_machine

    faults = Faults() if script is None else load_faults(script)
    if not network:
        keep_on_this_machine()
    from rtbrain.console import progress_bar
    from rtbrain.replay import Replay, ReplayReport, ReplaySettings
    from rtbrain.sources.recording import between, open_recording

    recording = open_recording(file, unit=unit, stream=stream)
    source = between(recording, start_s, stop_s)
    stop = on_signals()
    settings = ReplaySettings(name, speed, loop, chunk_ms, wait, source_id)
    markers = recording.markers()
    click.echo(
        f"sending {source.duration_s:.1f} s of {file.name} as LSL stream {name!r}, "
        f"{len(source.info.channels)} channels, {source.info.rate_hz:g} Hz, {source.info.unit}, speed {speed:g}; "
        f"{len(markers)} markers as '{name}-markers'; Ctrl-C stops"
    )
    with progress_bar() as progress:

        def show(_: ReplayReport, at_s: float) -> None:
            progress(f"sending {name}", (at_s % source.duration_s) / source.duration_s)

        def warn(text: str) -> None:
            click.echo(f"warning: {text}", err=True)

        done = Replay(source, settings, faults, markers, stop, show, tell=warn).run()
    click.echo(
        f"{'stopped after' if done.stopped else 'sent'} {done.samples} samples and {done.markers} markers, "
        f"{done.passes} whole pass(es); no chunk was later than {1000 * done.latest_s:.1f} ms"
    )


@click.command()
@click.option("--wait", "wait_s", type=click.FloatRange(0.5, 60), default=2.0, help="Seconds to look around.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def streams(wait_s: float, as_json: bool) -> None:
    """List the LSL streams on this machine and the network.

    Example: rtbrain streams --wait 5
    """
    import json

    from rtbrain.lsl_scope import keep_quiet

    keep_quiet()
    from rtbrain.sources.lsl_find import visible_streams

    found = visible_streams(wait_s)
    if as_json:
        fields = ("name", "type", "format", "rate_hz", "source_id", "host", "uid")
        listing = [{key: getattr(each, key) for key in fields} | {"channels": len(each.labels)} for each in found]
        click.echo(json.dumps(listing))
        return
    if not found:
        click.echo("no LSL stream in sight; is the amplifier's LSL output on, and no firewall in between?")
        return
    from rtbrain.console import console, table

    rows = table("name", "type", "channels", "rate", "format", "source id", "host")
    for each in found:
        rate = f"{each.rate_hz:g} Hz" if each.rate_hz else "irregular"
        rows.add_row(each.name, each.type, str(len(each.labels)), rate, each.format, each.source_id, each.host)
    console.print(rows)


@click.group()
def keys() -> None:
    """Keys for output that leaves the machine."""


@keys.command("new")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--name", default="decoder", help="Whose keys: `decoder`, or a client's name.")
def keys_new(folder: Path, name: str) -> None:
    """Make a key pair: NAME.key_secret stays here, NAME.key is given to the others.

    Example: rtbrain keys new keys --name decoder
    """
    from rtbrain.security import new_keys

    public, secret = new_keys(folder, name)
    click.echo(f"wrote {secret} (keep it secret) and {public} (copy it to the other side)")
