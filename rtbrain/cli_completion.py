"""The command `rtbrain completion`."""

from __future__ import annotations

import click

from rtbrain.cli_options import Choice
from rtbrain.errors import ConfigError

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that completes rtbrain's commands and options in a shell.

    For bash, write this into ~/.bashrc:  eval "$(rtbrain completion bash)"

    For zsh, into ~/.zshrc:  eval "$(rtbrain completion zsh)"

    For fish, into ~/.config/fish/completions/rtbrain.fish:  rtbrain completion fish | source

    Example: rtbrain completion bash
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise ConfigError(f"this version of click completes nothing in {shell}; update it: pip install -U click")
    main = ctx.find_root().command
    click.echo(kind(main, {}, "rtbrain", "_RTBRAIN_COMPLETE").source())
