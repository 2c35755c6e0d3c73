"""Where an audit is kept: in the user's cache, under a key that stands for the files, the task and this code.

Never in a set's own folder: data are often read-only, and should stay as they came.
"""

import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rtbrain.config import parse
from rtbrain.errors import SourceError
from rtbrain.training import folds
from rtbrain.training.dataset_config import DatasetConfig
from rtbrain.training.datasets import choose, find_root, load
from rtbrain.training.trials import Found
from rtbrain.writing import replacing

if TYPE_CHECKING:
    from rtbrain.training.nuisance.audit import Audit


def audit_key(config: DatasetConfig, task: str, chosen: Found) -> str:
    """Return the key of an audit of a task's chosen trials.

    Files count by name, size and time of change: hashing a set of 100 GB would take longer than the audit. A copy
    with new times asks for a new audit, which is the safe side to err on.
    """
    digest = hashlib.sha256()
    # The text of the audit and of the folds is their version, as a number could be forgotten. What the readers do
    # shows in the trials and their facts.
    for path in (*sorted(Path(__file__).parent.glob("*.py")), Path(folds.__file__)):
        digest.update(path.read_bytes())
    digest.update(f"{config.name}\n{config.reader}\n{config.options}\n{config.tasks[task]}\n{config.crop}\n".encode())
    harmonised = config.recipe.harmonise is not None
    digest.update(f"{config.protocol}\n{harmonised}\n{config.same_person}\n{chosen.same_person}\n".encode())
    for trial in sorted(chosen.trials, key=lambda trial: trial.name):
        files = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in trial.files]
        own = (trial.name, trial.subject, trial.label, trial.stimulus, trial.length_s, dict(trial.facts))
        digest.update(f"{own}\t{files}\n".encode())
    return digest.hexdigest()


def save_audit(audit: "Audit", root: Path) -> Path:
    """Keep an audit of the set below `root`; return where."""
    path = audit_path(root, audit.dataset, audit.task)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(asdict(audit), indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise SourceError(
            f"the audit of {audit.dataset} cannot be kept in {path.parent} ({error.strerror}); make that folder "
            "writable, or name another one by XDG_CACHE_HOME"
        ) from error
    return path


def load_audit(
    config: DatasetConfig, root: str | Path | None = None, task: str | None = None, found: Found | None = None
) -> "Audit | None":
    """Return the stored audit of a task, or None where none was made.

    Parameters
    ----------
    config : DatasetConfig
        The data set.
    root : str or Path, optional
        Its folder; see `rtbrain.training.datasets.find_root`.
    task : str, optional
        Name of the task; the first one by default.
    found : Found, optional
        The set as `load` returned it; read anew by default.

    Raises
    ------
    SourceError
        What is stored is damaged, or was made of other files, another task or another version.
    """
    from rtbrain.training.nuisance.audit import Audit

    name, chosen = config.task(task)
    path = audit_path(find_root(config, root), config.name, name)
    if not path.is_file():
        return None
    key = audit_key(config, name, choose(found or load(config, root), chosen, config.crop))
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SourceError(f"{path} is damaged ({error}); run `rtbrain data audit` again") from error
    if not isinstance(values, dict) or values.get("key") != key:
        raise SourceError(
            f"{path} is stale: the recordings, the task, its folds or rtbrain have changed since; "
            "run `rtbrain data audit` again"
        )
    return parse(Audit, values, str(path))


def audit_path(root: Path, dataset: str, task: str) -> Path:
    """Return the file that keeps the audit of a task of the set below `root`."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:16]
    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in f"{dataset}-{task}")
    return cache / "rtbrain" / "audit" / place / f"{name}.json"
