"""The nuisance that stands beside every accuracy: as stored, or measured now."""

from pathlib import Path

from rtbrain.errors import ConfigError, SourceError
from rtbrain.progress import Progress
from rtbrain.training.dataset_config import DatasetConfig
from rtbrain.training.datasets import find_root
from rtbrain.training.nuisance.audit import Audit, audit_task
from rtbrain.training.nuisance.report import one_line
from rtbrain.training.nuisance.store import load_audit, save_audit
from rtbrain.training.trials import Found


def audit_beside(config: DatasetConfig, found: Found, root: Path | None, task: str, progress: Progress) -> Audit:
    """Return the nuisance audit that stands beside all accuracies; it is made where none is stored, or a stale one."""
    try:
        stored = load_audit(config, root, task, found)
    except SourceError:
        stored = None
    if stored is None:
        stored = audit_task(config, found, task, lambda share: progress("nuisance audit", share))
        save_audit(stored, find_root(config, root))
    return stored


def nuisance_line(config: DatasetConfig, found: Found, root: Path | None, task: str, progress: Progress) -> str:
    """Return the line that stands beside every accuracy; a set too small to be audited says so there."""
    try:
        return one_line(audit_beside(config, found, root, task, progress))
    except ConfigError as error:
        return f"nuisance alone: not known, as this set cannot be audited ({error})"
