"""Evaluations of one or several data sets as a command asks for them: task by task, or with each other's templates."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rtbrain.errors import ConfigError
from rtbrain.progress import Progress
from rtbrain.training.dataset_config import DatasetConfig, load_dataset_config
from rtbrain.training.datasets import find_root, load
from rtbrain.training.evaluate import Plan, check_classes, evaluate, plan
from rtbrain.training.evaluate_table import Evaluation, tabulate
from rtbrain.training.methods import NUISANCE, Method
from rtbrain.training.nuisance.beside import audit_beside
from rtbrain.training.transfer import check_transfer, token_methods, with_templates_of
from rtbrain.training.transfer_table import Cell, TransferTable, cells_of
from rtbrain.training.trials import Found

ALL_TASKS = "all"
YARDSTICKS = ("majority", NUISANCE)
"""They do not listen to the recording, or to nothing else: a probe would tell nothing."""


@dataclass(frozen=True)
class DataSet:
    """A data set that was read."""

    config: DatasetConfig
    root: Path
    found: Found

    def tasks(self, asked: str | None) -> list[str]:
        """Return the tasks that are meant: one by name, the first by default, or all."""
        return list(self.config.tasks) if asked == ALL_TASKS else [self.config.task(asked)[0]]


@dataclass(frozen=True)
class EvaluateOrder:
    """How sets are evaluated, whichever they are."""

    methods: tuple[Method, ...]
    out: Path
    """Absolute: workers may have another working folder."""
    paper: bool = False
    raw: bool = False
    seeds: int = 1
    workers: int = 1
    cluster: str | None = None
    probes: bool = False


def open_sets(datasets: Sequence[str], roots: Sequence[Path]) -> list[DataSet]:
    """Read data sets; `roots` are theirs, in the same order, or none at all."""
    if roots and len(roots) != len(datasets):
        raise ConfigError(
            f"{len(roots)} folders for {len(datasets)} data sets; give --root once for each --dataset, in their order, "
            "or never"
        )
    opened: list[DataSet] = []
    for number, name in enumerate(datasets):
        config = load_dataset_config(name)
        if any(each.config.name == config.name for each in opened):
            raise ConfigError(f"two data sets are called {config.name}; tables could not tell them apart: rename one")
        folder = find_root(config, roots[number] if roots else None).resolve()
        opened.append(DataSet(config, folder, load(config, folder)))
    return opened


def plan_task(own: DataSet, task: str, order: EvaluateOrder) -> Plan:
    """Fix what is evaluated on one task."""
    probed = [method.name for method in order.methods if method.name not in YARDSTICKS] if order.probes else []
    return plan(own.config, own.found, order.methods, task, order.paper, order.seeds, probed, raw=order.raw)


def evaluate_plan(own: DataSet, planned: Plan, order: EvaluateOrder, progress: Progress) -> Evaluation:
    """Run what is planned, and put it into a table with its nuisance."""
    check_classes(planned)
    beside = audit_beside(own.config, own.found, own.root, planned.task, progress)
    answers = evaluate(planned, own.found, order.out, order.workers, progress, order.cluster)
    return tabulate(planned, answers, beside)


def evaluate_transfer(
    sets: Sequence[DataSet], task: str | None, order: EvaluateOrder, progress: Progress
) -> TransferTable:
    """Evaluate every set with its own templates and with those of every other."""
    if len(sets) < 2:
        raise ConfigError("templates are transferred between data sets; name two or more, each by --dataset")
    order = replace(order, methods=tuple(token_methods(order.methods)))
    sources = [plan_task(own, own.tasks(None)[0], order) for own in sets]
    targets = [(own, plan_task(own, name, order)) for own in sets for name in own.tasks(task)]
    pairs = [(source, own, target) for own, target in targets for source in sources]
    for _, target in targets:
        check_classes(target)
    for source, own, target in pairs:  # all of them before the first: what cannot be done is said at once, not in hours
        if source.config.name != own.config.name:
            check_transfer(source, target)
    cells: list[Cell] = []
    for source, own, target in pairs:
        foreign = source.config.name != own.config.name
        used = with_templates_of(source, target, order.out / "cache", progress) if foreign else target
        cells += cells_of(evaluate_plan(own, used, order, progress), source.config.name)
    question = "/".join(each.question for each in (*(target for _, target in targets), *sources))
    protocol = "paper" if order.paper else "strict"
    return TransferTable(tuple(cells), protocol, hashlib.sha256(question.encode()).hexdigest())
