"""The command `dashboard`: the web page that watches a live decoder."""

from __future__ import annotations

from pathlib import Path

import click

from rtbrain.cli_options import DASHBOARD_PORT, ENDPOINT, PATH, client_keys, on_signals


@click.command()
@click.option("--zmq", "endpoint", default=ENDPOINT, help="Where the decoder publishes.")
@click.option("--port", type=click.IntRange(0, 65535), default=DASHBOARD_PORT, help="Of the page; 0 takes a free one.")
@click.option("--host", default="127.0.0.1", help="Address to serve on; 0.0.0.0 lets other machines in, by a token.")
@click.option(
    "--token",
    envvar="RTBRAIN_DASHBOARD_TOKEN",
    help="Secret that opens the page.  [default: RTBRAIN_DASHBOARD_TOKEN; else one is made for other machines]",
)
@click.option("--key", type=PATH, help="This client's .key_secret file.")
@click.option("--server", type=PATH, help="The decoder's .key file.")
def dashboard(endpoint: str, port: int, host: str, token: str | None, key: Path | None, server: Path | None) -> None:
    """Serve a web page that shows what a live decoder publishes, until Ctrl-C.

    Example: rtbrain dashboard --zmq tcp://127.0.0.1:5556 --port 5006
    """
    keys = client_keys(key, server)
    from rtbrain.dashboard.server import Address, serve

    address = Address(host, port, token)
    stop = on_signals()
    serve(endpoint, keys, address, stop, lambda url: click.echo(f"the dashboard is at {url} - Ctrl-C stops"))
    click.echo("stopped")
