"""`python -m rtbrain` is `rtbrain`."""

from rtbrain.cli import main

if __name__ == "__main__":
    main(prog_name="rtbrain")
