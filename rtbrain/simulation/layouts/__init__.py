"""The five sets as they lie on disk, written from simulated EEG."""

from typing import Final

from rtbrain.simulation.layouts import deap, mdd, neurolong, nssi, seed
from rtbrain.simulation.layouts.plan import Layout

LAYOUTS: Final[dict[str, Layout]] = {
    "neurolong": neurolong.LAYOUT,
    "seed": seed.LAYOUT,
    "deap": deap.LAYOUT,
    "mdd": mdd.LAYOUT,
    "nssi": nssi.LAYOUT,
}
