"""Help for every command with an example that parses, mistakes answered with what was meant, completion, Ctrl-C."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from rtbrain.cli import main
from tests.system.test_cli import invoke, refused

PATIENCE_S = 250.0


def commands(group: click.Group = main, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


ALL = dict(commands())


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_command_has_help_with_an_example_that_parses(path: tuple[str, ...]) -> None:
    result = invoke(*path, "--help")
    assert result.exit_code == 0
    text = " ".join(result.output.split())
    found = re.search(r"Example: (rtbrain .*?) (?:Options:|$)", text)
    assert found, f"`rtbrain {' '.join(path)} --help` shows no example"
    words = shlex.split(found[1])[1:]
    assert tuple(words[: len(path)]) == path
    ALL[path].make_context("rtbrain", words[len(path) :])  # raises for an option or a number that does not exist


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_every_option_is_explained(path: tuple[str, ...]) -> None:
    silent = [each.opts[0] for each in ALL[path].params if isinstance(each, click.Option) and not each.help]
    assert not silent


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("stremes", "streams"),
        ("data audits", "audit"),
        ("train --datset mdd", "--dataset"),
        ("train --dataset mmd --out x", "mdd"),
        ("evaluate --dataset mdd --methods band-pwer", "band-power"),
        ("simulate --dataset neurolng --out x", "neurolong"),
        ("simulate --dataset nssi --form matt --out x", "mat"),
        ("train --dataset mdd --preset paper-txt --out x", "paper-text"),
        ("completion bsh", "bash"),
    ],
)
def test_a_mistake_is_answered_with_what_was_meant(
    words: str, meant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    message = refused(*words.split())
    assert re.search(rf"(perhaps|mean)[^;]*'{meant}'", message), message
    assert not list(tmp_path.iterdir())


def test_a_task_that_does_not_exist(tmp_path: Path) -> None:
    from rtbrain.simulation.writing import simulate
    from rtbrain.simulation.writing_order import Order

    simulate(Order("mdd", 4, minutes=0.05), tmp_path / "set", n_draws=40)
    args = ("train", "--dataset", tmp_path / "set" / "rtbrain.yaml", "--task", "EC", "--out", tmp_path / "x")
    assert "perhaps 'ec' is meant" in refused(*args)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    assert "_RTBRAIN_COMPLETE" in invoke("completion", shell).output


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    runner = tmp_path / "rtbrain"
    runner.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m rtbrain "$@"\n')
    runner.chmod(0o755)
    script = """
        export PATH=%s:$PATH; eval "$(rtbrain completion bash)"
        complete_last() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _rtbrain_completion rtbrain; }
        complete_last rtbrain str; echo "${COMPREPLY[@]}"
        complete_last rtbrain stream --lsl-; echo "${COMPREPLY[@]}"
    """
    done = subprocess.run(["bash", "-c", script % shlex.quote(str(tmp_path))], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["stream streams", "--lsl-out"], done.stderr


def test_ctrl_c_while_a_text_is_executed_ends_with_the_exit_code_too(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, types\n"
        "fake = types.ModuleType('rtbrain.cli')\n"
        "def main(prog_name): exec('raise KeyboardInterrupt')\n"
        "fake.main = main\n"
        "sys.modules['rtbrain.cli'] = fake\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "rtbrain"]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stderr.startswith("rtbrain: interrupted")


def test_ctrl_c_gives_one_line_and_nothing_half_written(tmp_path: Path) -> None:
    out = tmp_path / "set"
    order = ("--dataset", "neurolong", "--form", "small", "--subjects", "90", "--minutes", "0.5", "--out", str(out))
    command = [sys.executable, "-m", "rtbrain", "simulate", *order]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + PATIENCE_S
    while not any(tmp_path.glob(".*-set/sub-*/eeg/*.eeg")):  # it is writing recordings
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=PATIENCE_S)
    said = "rtbrain: interrupted; nothing is left half written, and what was finished is kept"
    assert (process.returncode, errors.splitlines()) == (130, [said])
    assert output == ""
    assert not list(tmp_path.iterdir())
