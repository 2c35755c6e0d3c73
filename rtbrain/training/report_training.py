"""The report of a training: what the model rests on, how it learnt, and how it does on its validation people."""

from collections.abc import Sequence
from pathlib import Path

from rtbrain.decoder.bundle import Bundle
from rtbrain.training.attention import attention_over
from rtbrain.training.batches import TokenSequence
from rtbrain.training.evaluate_table import Look
from rtbrain.training.exhibit import Exhibit
from rtbrain.training.fit import Trained
from rtbrain.training.paper_figures import paper_accuracy
from rtbrain.training.report_figures import confusion_figure, history_figure, over_time_figure, reliability_figure
from rtbrain.training.report_page import Page
from rtbrain.training.report_parts import add_attention, add_exhibits, add_making
from rtbrain.training.train_card import asked_seconds, validation_scores

REPORT = "report.html"
"""In the bundle's folder."""


def write_training_report(
    bundle: Bundle, trained: Trained, validation: Sequence[TokenSequence], shown: Exhibit
) -> Path:
    """Write the report of a training into its bundle's folder; return its path.

    `trained` is the model as it is shipped, `validation` the people that chose its epoch and temperature.
    """
    about, metrics = bundle.provenance, bundle.metrics
    sides = about["subjects"]
    page = Page(
        f"{bundle.name}: {about['dataset']}, task {about['task']}",
        f"rtbrain train · preset {about['preset']} · {len(sides['train'])} people train, {len(sides['validation'])} "
        f"validate, {len(sides['left_out'])} left out · context {bundle.context_s:g} s",
    )
    _add_accuracy(page, bundle, trained, validation)
    chosen = (
        f"epoch {about['best_epoch']}"
        if about["best_epoch"]
        else "the start, which says what a linear model of the tokens says: no epoch was better"
    )
    page.section("Training", f"{about['epochs_run']} epochs were run; the validation people chose {chosen}.")
    page.text(metrics["nuisance"], "beside")
    page.figure(history_figure(trained.history, trained.best_epoch), "loss and accuracy by epoch")
    add_attention(page, _attention(bundle, trained, validation))
    add_exhibits(page, [shown])
    add_making(
        page,
        {
            "data set": about["title"] or about["dataset"],
            "seed": str(about["seed"]),
            "training people": ", ".join(sides["train"]),
            "validation people": ", ".join(sides["validation"]),
            "left out": ", ".join(sides["left_out"]) or "nobody",
            "licence": bundle.licence,
            "commit": about["commit"],
            "made": about["created"],
            "bundle (SHA-256 of bundle.json)": bundle.sha256,
        },
        [shown],
    )
    path = bundle.folder / REPORT
    page.write(path)
    return path


def _add_accuracy(page: Page, bundle: Bundle, trained: Trained, validation: Sequence[TokenSequence]) -> None:
    about, metrics = bundle.provenance, bundle.metrics
    own = validation_scores(trained, validation)
    low, high = own.accuracy_interval
    page.section("Accuracy on the validation people")
    page.text(f"Not a test: {metrics['validation']['note']}", "warning")
    page.text(metrics["nuisance"], "beside")
    paper = paper_accuracy(about["dataset"], about["task"], "paper-text")
    row = [
        f"{len(validation)} trials of {len(own.by_person)} people",
        f"{own.accuracy:.3f}",
        f"{low:.2f} to {high:.2f}",
    ]
    row += [f"{own.balanced:.3f}", f"{own.auc:.3f}", f"{own.calibration_error:.3f}"]
    row += ["n/a" if paper is None else f"{paper / 100:.4f}"]
    header = ["", "accuracy", "95 %", "balanced", "AUC", "calibration error", "the paper's model, its own test"]
    page.table(header, [row])
    curve = {f"{each:g}": validation_scores(trained, validation, each) for each in asked_seconds(validation)}
    curve["all"] = own
    over_time = {bundle.name: {each: (at.accuracy, at.accuracy_interval) for each, at in curve.items()}}
    page.heading("Against seconds of EEG seen")
    page.figure(
        over_time_figure(over_time, 1 / len(bundle.classes), "validation people"), "accuracy against seconds seen"
    )
    page.heading("Confusion and reliability")
    page.figure(confusion_figure({bundle.name: own}, bundle.classes), "confusion matrix")
    page.figure(reliability_figure({bundle.name: own}), "reliability diagram")
    losses = metrics["validation"]
    page.text(
        f"Temperature {bundle.temperature:.2f}: log loss {losses['log_loss_before_calibration']:.3f} before, "
        f"{losses['log_loss']:.3f} after.",
        "note",
    )


def _attention(bundle: Bundle, trained: Trained, validation: Sequence[TokenSequence]) -> list[Look]:
    told = trained.probabilities(validation[:1])[0]
    best, truth = int(told.argmax()), bundle.classes[validation[0].label]
    said = f"said {bundle.classes[best]} ({told[best]:.2f}), true {truth}"
    found = attention_over(trained.model, bundle.context_s, validation[0])
    return [] if found is None else [Look(bundle.name, said, found)]
