"""The nuisance audit: how much of a data set's class can be told from what is not brain."""

from rtbrain.training.nuisance.audit import Audit, audit_task
from rtbrain.training.nuisance.report import one_line, verdict
from rtbrain.training.nuisance.store import load_audit, save_audit

__all__ = ["Audit", "audit_task", "load_audit", "one_line", "save_audit", "verdict"]
