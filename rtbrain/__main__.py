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
    finally:
        # Ctrl-C while a text is being executed, as when a dataclass is made, marks the interpreter: under `python -m`
        # it would end by the signal instead of with our exit code, although all was handled. This takes the mark off.
        exec("")


if __name__ == "__main__":
    run()
