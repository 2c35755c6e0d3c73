"""A person's head: fields of dipoles on the electrodes, through MNE's spherical head model."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from rtbrain.conditioning.channels import canonical
from rtbrain.errors import ChannelError
from rtbrain.messages import FloatArray
from rtbrain.simulation.population import Appearance
from rtbrain.simulation.seeding import generator
from rtbrain.sources.synthetic import STATE_DIPOLES
from rtbrain.topography import electrodes_on_sphere

RADIUS_M: Final = 0.095
N_NOISE_SOURCES: Final = 24
_DEEPEST: Final = 0.85  # head radii; the innermost shell of MNE's model is at 0.9, and sources must lie inside

# Electrodes of SEED's cap that are in no standard montage; they sit near these.
_NEAR: Final = {"CB1": "PO9", "CB2": "PO10"}
_REFERENCE: Final = ("TP9", "TP10")
_BLINK_SITE: Final = "Fpz"
# A source behind each eye (head radii) that points to the front and up, as the cornea's charge does in a blink.
_EYES: Final = np.array([[(0.3, 0.78, 0.0), (0.1, 1.0, 0.6)], [(-0.3, 0.78, 0.0), (-0.1, 1.0, 0.6)]])


@dataclass(frozen=True, eq=False)
class Head:
    """What reaches the electrodes, against linked mastoids."""

    maps: FloatArray
    """(states, channels); GFP 1."""
    noise: FloatArray
    """(sources, channels) of the brain's other activity; RMS over channels 1 when all sources have RMS 1."""
    blink: FloatArray
    """(channels,) relative to Fpz."""


@lru_cache(maxsize=64)
def make_head(look: Appearance, n_states: int, channels: tuple[str, ...], seed: int, subject: int) -> Head:
    """Return the head of one person; electrodes may be spelled in any usual way."""
    rng = generator(seed, "head", subject)
    n_table = len(STATE_DIPOLES)  # all are drawn, so that the first maps do not depend on how many are used
    moved = look.location_sd * rng.standard_normal((n_table, 3))
    turned = look.direction_sd * rng.standard_normal((n_table, 3))
    places, directions = STATE_DIPOLES[:, 0] + moved, _unit(STATE_DIPOLES[:, 1])
    directions = directions + np.cross(turned, directions)
    deep = _unit(rng.standard_normal((N_NOISE_SOURCES, 3))) * _DEEPEST * rng.random((N_NOISE_SOURCES, 1)) ** (1 / 3)
    anywhere = rng.standard_normal((N_NOISE_SOURCES, 3))
    field = _fields(
        channels,
        np.concatenate([places[:n_states], deep, _EYES[:, 0]]),
        np.concatenate([directions[:n_states], anywhere, _EYES[:, 1]]),
    )
    inside, at_blink_site = field[:, :-1], field[:, -1]
    gfp = inside.std(axis=1, keepdims=True)
    noise = inside[n_states:-2] / gfp[n_states:-2] / np.sqrt(N_NOISE_SOURCES)
    blink = inside[-2:].sum(axis=0) / at_blink_site[-2:].sum()
    return Head(inside[:n_states] / gfp[:n_states], noise, blink)


def _fields(channels: tuple[str, ...], places: FloatArray, directions: FloatArray) -> FloatArray:
    """Return the potentials (dipoles, channels + 1) of dipoles; the last column is that at the blinks' site."""
    import mne

    known = electrodes_on_sphere()
    wanted = [_NEAR.get(name.upper(), name) for name in map(canonical, channels)]
    unknown = [given for given, name in zip(channels, wanted, strict=True) if name not in known]
    if unknown:
        raise ChannelError(f"no standard position is known for {', '.join(unknown)}; give names of the 10-05 system")
    sites = list(dict.fromkeys([*wanted, _BLINK_SITE, *_REFERENCE]))
    info = mne.create_info(sites, 1000.0, "eeg")
    spots = {site: known[site] * RADIUS_M for site in sites}
    info.set_montage(mne.channels.make_dig_montage(spots, coord_frame="head"))
    sphere = mne.make_sphere_model((0.0, 0.0, 0.0), RADIUS_M, verbose="error")
    distance = np.linalg.norm(places, axis=1, keepdims=True)
    places = places * np.minimum(1.0, _DEEPEST / np.maximum(distance, 1e-9))
    n = len(places)
    dipoles = mne.Dipole(np.arange(n), places * RADIUS_M, np.ones(n), _unit(directions), np.full(n, 100.0))
    forward, _ = mne.make_forward_dipole(dipoles, sphere, info, verbose="error")
    field = forward["sol"]["data"].T.astype(float)  # (dipoles, sites)
    column = {name: i for i, name in enumerate(forward["sol"]["row_names"])}
    field = field - field[:, [column[site] for site in _REFERENCE]].mean(axis=1, keepdims=True)
    return np.ascontiguousarray(field[:, [column[name] for name in [*wanted, _BLINK_SITE]]])


def _unit(vectors: FloatArray) -> FloatArray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
