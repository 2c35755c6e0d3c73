"""Real-time EEG decoder: Brain Tokens from microstates, live and offline by the same chain."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rtbrain.decoder_api import Decoder

__all__ = ["Decoder", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load `Decoder` when it is first asked for, so that the command line need not wait for it."""
    if name != "Decoder":
        raise AttributeError(f"module 'rtbrain' has no attribute {name!r}")
    from rtbrain.decoder_api import Decoder

    return Decoder
