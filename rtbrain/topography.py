"""Pictures: templates as topographies, and the curve of a scan. Drawn by MNE and matplotlib."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rtbrain.conditioning.channels import canonical, is_scalp
from rtbrain.errors import ChannelError
from rtbrain.messages import FloatArray
from rtbrain.microstates.templates import Templates
from rtbrain.writing import replacing


def standard_montage() -> Any:
    """Return MNE's montage of the whole 10-05 system."""
    import mne

    # MNE 1.13 renamed this montage; older versions know the second name only.
    names = {"colin27_1005", "standard_1005"}.intersection(mne.channels.get_builtin_montages())
    return mne.channels.make_standard_montage(min(names))


@cache
def electrodes_on_sphere() -> dict[str, FloatArray]:
    """Return where the 10-05 electrodes are on the unit sphere that fits them best, by canonical name."""
    placed = standard_montage().get_positions()["ch_pos"]
    found = {canonical(name): place for name, place in placed.items() if is_scalp(canonical(name))}
    place = np.array(list(found.values()))
    # |p|^2 = 2 p.c + (r^2 - |c|^2): linear in the centre c.
    centre = np.linalg.lstsq(np.column_stack([2 * place, np.ones(len(place))]), (place**2).sum(axis=1))[0][:3]
    directions = place - centre
    return dict(zip(found, directions / np.linalg.norm(directions, axis=1, keepdims=True), strict=True))


def montage_info(channels: Sequence[str]) -> Any:
    """Return an mne.Info with standard positions of these electrodes; refuse names that have none."""
    import mne

    montage = standard_montage()
    known = {name.upper(): name for name in montage.ch_names}
    unknown = [name for name in channels if name.upper() not in known]
    if unknown:
        raise ChannelError(f"no standard position is known for {', '.join(unknown)}; topographies need 10-05 names")
    # The Info keeps the recipe's own spelling; only the positions come from the montage.
    placed = montage.get_positions()
    positions = {name: placed["ch_pos"][known[name.upper()]] for name in channels}
    info = mne.create_info(list(channels), 250.0, "eeg")
    info.set_montage(
        mne.channels.make_dig_montage(
            positions, nasion=placed["nasion"], lpa=placed["lpa"], rpa=placed["rpa"], coord_frame=placed["coord_frame"]
        )
    )
    return info


def draw_templates(templates: Templates, path: Path) -> None:
    """Write a PNG with one row of head maps per band; red and blue are poles whose sign means nothing."""
    write_figure(templates_figure(templates), path)


def templates_figure(templates: Templates) -> Any:
    """Return a figure with one row of head maps per band."""
    import mne

    info = montage_info(templates.channels)
    bands = templates.report.get("bands", [])
    columns = max(len(maps) for maps in templates.maps)
    figure = new_figure(1.7 * columns + 0.3, 2.3 * len(templates.maps) + 0.2)
    axes = np.atleast_2d(figure.subplots(len(templates.maps), columns, squeeze=False))
    for row, maps in enumerate(templates.maps):
        shares = bands[row].get("gev_per_state") if row < len(bands) else None
        name = templates.recipe["bands"][row]["name"] if templates.recipe else f"band {row}"
        for column in range(columns):
            axis = axes[row, column]
            if column >= len(maps):
                axis.set_axis_off()
                continue
            limit = float(np.abs(maps[column]).max())
            mne.viz.plot_topomap(
                maps[column], info, axes=axis, show=False, vlim=(-limit, limit), cmap="RdBu_r", contours=5
            )
            share = "" if shares is None else f"\nGEV {100 * shares[column]:.1f} %"
            axis.set_title(f"{name} {column}{share}" if len(templates.maps) > 1 else f"{column}{share}", fontsize=9)
    return figure


def draw_scan(templates: Templates, path: Path) -> bool:
    """Write a PNG with GEV and the cross-validation criterion against the number of states, if there was a scan."""
    figure = scan_figure(templates)
    if figure is not None:
        write_figure(figure, path)
    return figure is not None


def scan_figure(templates: Templates) -> Any | None:
    """Return a figure of GEV and the cross-validation criterion, or None if there was no scan."""
    curves = [(band["band"], band["scan"]) for band in templates.report.get("bands", []) if "scan" in band]
    if not curves:
        return None
    columns = min(2, len(curves))
    rows = -(-len(curves) // columns)
    figure = new_figure(5.2 * columns, 3.2 * rows)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[len(curves) :]:
        axis.set_axis_off()
    for axis, (name, curve) in zip(axes, curves, strict=False):
        (gev,) = axis.plot(curve["n_states"], curve["gev"], "o-", color="#0072b2", label="GEV")
        other = axis.twinx()
        (cv,) = other.plot(curve["n_states"], curve["cv"], "s--", color="#d55e00", label="CV")
        axis.set(xlabel="number of states", ylabel="global explained variance", title=name, xticks=curve["n_states"])
        other.set_ylabel("cross-validation criterion")
        axis.axvline(curve["recommended"], color="0.6", lw=1)
        axis.legend(handles=[gev, cv], loc="center right")
    return figure


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure of so many inches, without pyplot: no global state, and no display is needed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def write_figure(figure: Any, path: Path) -> None:
    """Write a figure as PNG, whole or not at all."""
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=130, format="png")
