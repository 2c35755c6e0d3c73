"""EEG of simulated people with a known answer: what is in it, and how well it can be told at best."""

from rtbrain.simulation.confound import NARROW, Confound
from rtbrain.simulation.eeg import Interval, Signal
from rtbrain.simulation.optimum import Optimum
from rtbrain.simulation.population import Appearance, Design, Effect
from rtbrain.simulation.world import World

__all__ = ["NARROW", "Appearance", "Confound", "Design", "Effect", "Interval", "Optimum", "Signal", "World"]
