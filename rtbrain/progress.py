"""How long work tells how far it is."""

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Told what is being done, and which share of it is done."""
