"""`python -m rtbrain` is `rtbrain`."""

import sys

from rtbrain.errors import INTERRUPTED, INTERRUPTED_SAID


def run() -> None:
    """Run the command line; Ctrl-C ends it in one line, also while it is still being loaded."""
    try:
        from rtbrain.cli import main

        main(prog_name="rtbrain")
    except KeyboardInterrupt:
        sys.stderr.write(f"rtbrain: {INTERRUPTED_SAID}\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    run()
