"""Real-time EEG decoder: Brain Tokens from microstates, live and offline by the same chain."""

__version__ = "0.1.0"
