"""The commands that tell whether all is well: `parity` and `doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtbrain.cli_dataset import ROOT
from rtbrain.cli_options import DASHBOARD_PORT, OUTPUT_PORT, PATH, SEED, STREAM, UNIT, Choice
from rtbrain.errors import ConfigError, perhaps

if TYPE_CHECKING:
    from rtbrain.decoder.session import Device
    from rtbrain.training.trials import Trial


@click.command()
@click.argument("bundle")
@click.argument("file", type=PATH, required=False)
@click.option(
    "--dataset", metavar="NAME|FILE", help="Take a trial of this data set, whose files only its reader knows."
)
@ROOT
@click.option("--trial", "trial_name", help="Which trial of the data set.  [default: its first]")
@click.option("--start", "start_s", type=click.FloatRange(0), default=0.0, help="First second to use.")
@click.option("--stop", "stop_s", type=click.FloatRange(0), help="Second to stop at.  [default: the end]")
@click.option("--device", type=Choice(["auto", "cpu", "cuda"]), default="auto", help="Where the live path runs.")
@SEED
@UNIT
@STREAM
def parity(
    bundle: str,
    file: Path | None,
    dataset: str | None,
    root: Path | None,
    trial_name: str | None,
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
    if dataset is None and (root is not None or trial_name is not None):
        raise ConfigError("--root and --trial belong to --dataset, not to a FILE; leave them out")
    if dataset is not None and (unit is not None or stream is not None):
        raise ConfigError("--unit and --stream belong to a FILE; a data set's configuration says what is in it")
    from rtbrain.lsl_scope import keep_on_this_machine

    keep_on_this_machine()
    from rtbrain.console import progress_bar
    from rtbrain.decoder.bundle import PARITY, load_bundle
    from rtbrain.decoder.find import find_bundle
    from rtbrain.parity import certify

    found = load_bundle(find_bundle(bundle))
    source = None
    if dataset is not None and file is None:
        trial = _trial(dataset, root, trial_name)
        file, source = trial.files[0], trial.open()
    elif dataset is not None or file is None:
        raise ConfigError("a recording is needed, and one only: give its FILE, or --dataset and --trial")
    instead = ", in place of the certificate that was there" if (found.folder / PARITY).exists() else ""
    with progress_bar() as progress:
        made = certify(
            found,
            file,
            source=source,
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
        f"{made.chunk_samples[1]} samples: all {made.tokens} tokens are identical, live and offline; "
        f"{made.decisions_compared} of {made.decisions} decisions were compared, and their probabilities differ by "
        f"{made.largest_probability_difference:.1e} at the most\nwrote {found.folder / PARITY}{instead}"
    )


def _trial(dataset: str, root: Path | None, name: str | None) -> Trial:
    from rtbrain.training.dataset_config import load_dataset_config
    from rtbrain.training.datasets import load

    config = load_dataset_config(dataset)
    trials = {trial.name: trial for trial in load(config, root).trials}
    if name is None:
        return next(iter(trials.values()))
    if name not in trials:
        raise ConfigError(
            f"{config.name} has no trial {name!r}{perhaps(name, trials)}; it has {len(trials)}, such as "
            f"{next(iter(trials))}"
        )
    return trials[name]


@click.command()
@click.option("--lsl", "wanted", metavar="NAME", help="Listen to this stream, too: its name, type or source id.")
@click.option("--bundle", help="Trained model: folder, or name.  [default: as for `rtbrain stream`]")
@click.option("--seconds", type=click.FloatRange(1, 600), default=5.0, help="How long to listen.")
@click.option("--unit", type=Choice(["V", "mV", "uV", "nV"]), help="What the numbers are, if the stream errs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(wanted: str | None, bundle: str | None, seconds: float, unit: str | None, as_json: bool) -> None:
    """Check this machine, a bundle and a live stream, and say in words what is wrong.

    The exit code is 2 if something would keep `rtbrain stream` from decoding.

    Example: rtbrain doctor --lsl EEG --bundle neurolong-demo
    """
    import json
    from dataclasses import asdict
    from functools import partial

    from rtbrain.lsl_scope import keep_quiet

    keep_quiet()
    from rtbrain.console import progress_bar, show_findings
    from rtbrain.doctor import check_bundle, check_machine
    from rtbrain.doctor_stream import check_stream

    findings = list(check_machine({"output": OUTPUT_PORT, "dashboard": DASHBOARD_PORT}))
    about, found = check_bundle(bundle)
    findings += about
    if wanted is not None:
        with progress_bar() as progress:
            findings += check_stream(wanted, found, unit, seconds, partial(progress, f"listening to {wanted}"))
    if as_json:
        click.echo(json.dumps([asdict(each) for each in findings]))
    else:
        show_findings([(each.what, each.verdict, each.text) for each in findings])
    if any(each.verdict == "bad" for each in findings):
        click.get_current_context().exit(2)
