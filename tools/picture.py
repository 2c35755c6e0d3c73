"""Take a picture of the dashboard: a recording replayed over LSL, decoded, and watched in Chromium, all for real.

Example: python tools/picture.py demo-output/bundle demo-output/session/session.vhdr --out docs/images/dashboard.png
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.browser import browsing
from tests.decoding import Decoding
from tests.system.test_dashboard import condition_is, serving
from tests.system.test_live_io import replaying

STREAM = "EEG"
LARGEST_KB = 400


def main() -> int:
    """Let the session run for some time, then wait for a trusted decision, and write what the page shows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("recording", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="PNG to write")
    parser.add_argument("--seconds", type=float, default=150.0, help="of the session before the picture")
    parser.add_argument("--width", type=int, default=1360)
    parser.add_argument("--dark", action="store_true")
    args = parser.parse_args()
    with (
        Decoding(args.bundle, STREAM) as decoding,
        serving(decoding.endpoint) as (url, _),
        replaying(args.recording, STREAM, "--loop"),
        browsing() as tab,
    ):
        tab.look(args.width, 1000, dark=args.dark)
        tab.open(url)
        tab.until(condition_is("live"))
        until_s = time.monotonic() + args.seconds
        while time.monotonic() < until_s:
            decoding.receive()
        tab.until(f"{condition_is('live')} && document.getElementById('trust').dataset.trusted === 'true'")
        size = len(tab.screenshot(args.out)) / 1000
        print(f"wrote {args.out}, {size:.0f} kB; errors in the browser: {tab.errors or 'none'}")
        return 1 if tab.errors or size > LARGEST_KB else 0


if __name__ == "__main__":
    sys.exit(main())
