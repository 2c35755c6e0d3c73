"""The commands that tell whether all is well: `parity`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtbrain.cli_options import PATH, SEED, STREAM, UNIT

if TYPE_CHECKING:
    from rtbrain.decoder.session import Device


@click.command()
@click.argument("bundle", type=PATH)
@click.argument("file", type=PATH)
@click.option("--start", "start_s", type=click.FloatRange(0), default=0.0, help="First second to use.")
@click.option("--stop", "stop_s", type=click.FloatRange(0), help="Second to stop at.  [default: the end]")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", help="Where the live path runs.")
@SEED
@UNIT
@STREAM
def parity(
    bundle: Path,
    file: Path,
    start_s: float,
    stop_s: float | None,
    device: Device,
    seed: int,
    unit: str | None,
    stream: str | None,
) -> None:
    """Certify that a bundle decodes a recording live as it does offline.

    The recording goes over LSL in random chunks through the live decoder, and as a whole through the offline one. If
    all tokens are identical and no probability differs by more than 1e-4, parity.json is written beside the bundle.
    If not, the exit code is 2, and a certificate that was there is removed.

    Example: rtbrain parity models/mine session.edf --stop 60
    """
    from rtbrain.lsl_scope import keep_on_this_machine

    keep_on_this_machine()
    from rtbrain.console import progress_bar
    from rtbrain.decoder.bundle import PARITY, find_bundle, load_bundle
    from rtbrain.parity import certify

    found = load_bundle(find_bundle(bundle))
    with progress_bar() as progress:
        made = certify(
            found,
            file,
            start_s=start_s,
            stop_s=stop_s,
            unit=unit,
            stream=stream,
            seed=seed,
            device=device,
            progress=progress,
        )
    click.echo(
        f"{made.file}, {made.seconds[1] - made.seconds[0]:.1f} s in {made.chunks} chunks of {made.chunk_samples[0]} to "
        f"{made.chunk_samples[1]} samples: all {made.tokens} tokens are identical, live and offline; probabilities of "
        f"{made.decisions_compared} of {made.decisions} decisions differ by "
        f"{made.largest_probability_difference:.1e} at the most\nwrote {found.folder / PARITY}"
    )
