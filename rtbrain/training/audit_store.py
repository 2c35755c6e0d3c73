"""Where audits of data sets are kept: in the user's cache, never in a set's own folder, which may be read-only."""

import hashlib
import os
from pathlib import Path

from rtbrain.training.dataset_config import DatasetConfig
from rtbrain.training.datasets import find_root
from rtbrain.training.nuisance import Audit, load_audit, save_audit
from rtbrain.training.trials import Found


def audit_folder(root: Path) -> Path:
    """Return the folder in the user's cache that keeps what was found about the set below `root`."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "rtbrain" / "audit" / hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:16]


def keep_audit(audit: Audit, root: Path) -> Path:
    """Keep an audit of the set below `root`; return where."""
    return save_audit(audit, audit_folder(root))


def kept_audit(config: DatasetConfig, root: str | Path | None, task: str, found: Found) -> Audit | None:
    """Return the audit of a task that was kept, or None where none was made; `load_audit` says what it refuses.

    One that an earlier rtbrain left in the set's folder is read as well.
    """
    folder = audit_folder(find_root(config, root))
    kept = load_audit(config, folder, task, found) if folder.is_dir() else None
    return kept if kept is not None else load_audit(config, root, task, found)
