"""What the demo does, as commands that anybody can type: which, in which order, and what each leaves behind."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rtbrain.errors import ConfigError
from rtbrain.writing import replacing

SETTINGS: Final = "demo.json"


@dataclass(frozen=True)
class DemoSettings:
    """How much is simulated, trained and decoded."""

    subjects: int = 20
    films: int = 10
    """Per person."""
    film_s: float = 24.0
    effect: float = 4.0
    """Factor on what states do to the EEG; 1, as `rtbrain simulate` has it, is already more than real sets show."""
    context_s: float = 20.0
    epochs: int = 40
    stretches: int = 8
    stretch_s: float = 60.0
    speed: float = 8.0
    """Of the replay."""


QUICK: Final = DemoSettings(subjects=5, films=4, film_s=24.0, context_s=10.0, epochs=6, stretches=4, stretch_s=20.0)
"""Everything once, in a fraction of the time; too little for an accuracy that means much."""


@dataclass(frozen=True)
class Step:
    """One command that leaves something behind, so that it need not be run twice."""

    title: str
    command: tuple[str, ...]
    """Of rtbrain, without its name."""
    made: Path
    """Is there once the command is done."""


def steps(settings: DemoSettings, out: Path) -> list[Step]:
    """Return the commands before the live part."""
    data, bundle, session = out / "set", out / "bundle", out / "session"
    return [
        Step(
            f"simulate {settings.subjects} people who watch {settings.films} films each (the effect of their state on "
            f"the EEG is made {settings.effect:g} times that of other simulated sets, so that a minute of training is "
            "enough)",
            (
                *("simulate", "--dataset", "neurolong", "--form", "small", "--subjects", f"{settings.subjects}"),
                *("--trials", f"{settings.films}", "--minutes", f"{settings.film_s / 60:g}"),
                *("--effect", f"{settings.effect:g}", "--out", str(data)),
            ),
            data / "simulation.json",
        ),
        Step(
            "train on these people: templates, tokens, the transformer, calibration, export",
            (
                *("train", "--dataset", str(data / "rtbrain.yaml"), "--context", f"{settings.context_s:g}"),
                *("--epochs", f"{settings.epochs}", "--out", str(bundle)),
            ),
            bundle / "bundle.json",
        ),
        Step(
            "record somebody else, whose state changes now and then",
            (
                *("simulate-session", str(data), "--stretches", f"{settings.stretches}"),
                *("--seconds", f"{settings.stretch_s:g}", "--context", f"{settings.context_s:g}"),
                *("--out", str(session)),
            ),
            session / "session.json",
        ),
        Step(
            "certify that the live path gives the same answers as the offline one",
            ("parity", str(bundle), str(session / "session.vhdr"), "--stop", f"{min(60.0, settings.stretch_s):g}"),
            bundle / "parity.json",
        ),
    ]


def stream_command(out: Path, name: str, endpoint: str, log: Path | None) -> tuple[str, ...]:
    """Return the command that decodes the replayed stream."""
    logged = () if log is None else ("--log", str(log))
    return ("stream", "--lsl", name, "--bundle", str(out / "bundle"), "--zmq", endpoint, *logged, "--local")


def replay_command(out: Path, name: str, speed: float, loop: bool) -> tuple[str, ...]:
    """Return the command that sends the recording as an amplifier would."""
    recording = str(out / "session" / "session.vhdr")
    return ("replay", recording, "--name", name, "--speed", f"{speed:g}", "--wait", *(("--loop",) if loop else ()))


def score_command(out: Path, log: Path) -> tuple[str, ...]:
    """Return the command that compares the session log with the truth."""
    return ("session", "score", str(log), "--truth", str(out / "session" / "session.json"))


def claim(out: Path, settings: DemoSettings) -> None:
    """Take a folder for a demo, or go on in one whose demo has the same settings."""
    path, mine = out / SETTINGS, asdict(settings)
    if path.is_file():
        if json.loads(path.read_text(encoding="utf-8")) != mine:
            raise ConfigError(f"{out} holds a demo with other settings; choose another --out, or remove it")
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out} exists and holds no demo; choose another --out")
    out.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(mine, indent=1) + "\n", encoding="utf-8")
