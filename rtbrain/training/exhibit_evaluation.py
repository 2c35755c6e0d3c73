"""Templates and tokens of an evaluation's first fold, for its report."""

from pathlib import Path

from rtbrain.training.evaluate import Plan, first_fold
from rtbrain.training.evaluate_fold import FoldData
from rtbrain.training.exhibit import Exhibit, exhibit, with_scan
from rtbrain.training.methods import TokenNeed


def evaluation_exhibits(planned: Plan, out: Path) -> list[Exhibit]:
    """Return what the methods' tokens look like in the first fold; its tokens stay in the folder for the next call."""
    job = first_fold(planned, out)
    data, trials = FoldData(job), {trial.name: trial for trial in job.trials}
    fold = job.fold
    known = fold.train + fold.validation
    classes = [rule.name for rule in planned.config.tasks[planned.task].classes]
    shown = []
    for need in sorted({need for method in planned.methods for need in method.needs}, key=repr):
        templates = data.templates(need)
        if need not in job.foreign:
            chosen = [trials[name] for name in known + (fold.test if job.optimistic else ())]
            templates = with_scan(templates, chosen, data.peaks, job.seed)
        results = [(each.person, each.label, each.tokens(need)) for each in data.examples(known)]
        people = len({person for person, _, _ in results})
        fitted_to = "all people, the test people included" if job.optimistic else "its training and validation people"
        about = (
            f"Of the first fold ({fold.name}, seed {job.seed}), fitted to {fitted_to}; statistics of its {people} "
            "training and validation people."
        )
        shown.append(exhibit(_name(need, planned.config.n_states), about, templates, results, classes))
    return shown


def _name(need: TokenNeed, n_states: int) -> str:
    return f"{need.n_states or n_states} states in {'several bands' if need.several_bands else 'one band'}"
