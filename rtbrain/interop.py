"""Templates as pycrostates' .fif files, so that labs can go on with what they have."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rtbrain.conditioning.channels import canonical_channels
from rtbrain.errors import SourceError, TemplateError
from rtbrain.microstates.templates import Templates, referenced
from rtbrain.pipeline import Recipe
from rtbrain.topography import montage_info
from rtbrain.writing import replacing


def _pycrostates() -> Any:
    import pycrostates.io
    import pycrostates.io.fiff

    return pycrostates.io


def write_fif(templates: Templates, path: Path, band: int = 0) -> None:
    """Write one band's templates as a fitted pycrostates ModKMeans (the maps stand in for the fitted data)."""
    maps = templates.maps[band]
    reports = templates.report.get("bands", [])
    with replacing(path) as temporary:
        # pycrostates has no public writer for maps that it did not fit itself.
        _pycrostates().fiff._write_cluster(
            str(temporary),
            maps,
            montage_info(templates.channels),
            "ModKMeans",
            [str(state) for state in range(len(maps))],
            maps.T,
            np.arange(len(maps)),
            n_init=templates.report.get("fit", {}).get("n_starts", 1),
            max_iter=templates.report.get("fit", {}).get("max_iterations", 1),
            tol=templates.report.get("fit", {}).get("tolerance", 1e-6),
            GEV_=reports[band]["gev"] if reports else 0.0,
        )


def is_clustering(path: Path) -> bool:
    """Say whether a file is a pycrostates clustering."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # whatever MNE has to say of a file that is something else
            _pycrostates().read_cluster(str(path))
    except (RuntimeError, ValueError, OSError, KeyError, TypeError, AttributeError):
        return False
    return True


def read_fif(path: Path, recipe: Recipe) -> Templates:
    """Read a pycrostates clustering as templates of a recipe with one band."""
    if len(recipe.bands) != 1:
        raise TemplateError(f"a pycrostates file holds templates of one band, the recipe has {len(recipe.bands)}")
    if not path.is_file():
        raise SourceError(f"{path} does not exist")
    if not is_clustering(path):
        raise SourceError(f"{path} is no clustering of pycrostates; save one by its `ModKMeans.save`")
    cluster = _pycrostates().read_cluster(str(path))
    names = tuple(canonical_channels(cluster.info["ch_names"]))
    maps = referenced(np.asarray(cluster.cluster_centers_, np.float64))
    recipe = replace(recipe, channels=replace(recipe.channels, names=names))
    report = {"imported": path.name, "bands": [{"n_states": len(maps), "gev": float(cluster.GEV_)}]}
    return Templates(names, (maps,), recipe.to_dict(), report)
