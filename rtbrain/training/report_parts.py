"""Parts that the reports of `train` and `evaluate` share."""

import sys
from collections.abc import Mapping, Sequence
from importlib import metadata

from rtbrain import __version__
from rtbrain.microstates.templates import fingerprint
from rtbrain.topography import scan_figure, templates_figure
from rtbrain.training.corpus_cache import program
from rtbrain.training.evaluate_table import Look
from rtbrain.training.exhibit import Exhibit
from rtbrain.training.report_figures import attention_figure, statistics_figure
from rtbrain.training.report_page import Page

_PACKAGES = ("numpy", "scipy", "mne", "scikit-learn", "torch", "onnxruntime-gpu", "onnxruntime", "matplotlib")


def add_exhibits(page: Page, shown: Sequence[Exhibit]) -> None:
    """Add templates, the scan and the statistics by class."""
    for each in shown:
        page.section(f"Microstate templates: {each.name}", each.about)
        page.text("Red and blue are poles whose sign means nothing. GEV is each state's part of what is explained.")
        page.figure(templates_figure(each.templates), f"topographies of {each.name}", "png")
        curve = scan_figure(each.templates)
        if curve is not None:
            page.heading("How many states explain how much")
            page.figure(curve, "GEV and cross-validation criterion against the number of states")
            for band in each.templates.report["bands"]:
                page.text(f"{band['band']}: {band['scan']['reason']}. {band['n_states']} are used.", "note")
        page.heading("Token statistics by class")
        rates = ", ".join(f"{name} {rate:.1f}" for name, rate in each.tokens_per_s.items())
        page.text(f"Bars are means over people, with 95 % intervals. Tokens per second: {rates}.", "note")
        for band in each.by_class:
            if len(each.by_class) > 1:
                page.text(f"Band {band}", "note")
            page.figure(statistics_figure(each, band), f"statistics of band {band} by class")


def add_attention(page: Page, shown: Sequence[Look], label: str = "") -> None:
    """Add where CLS looked, under what its accuracies are labelled with."""
    if not shown:
        return
    page.section(
        "CLS attention over an example",
        "How the model's CLS token divides its attention over the tokens of one context of one trial, mean over heads. "
        "Each context, live as here, is an answer of its own. Attention shows what was read, not why the answer is "
        "what it is.",
    )
    if label:
        page.text(label, "warning")
    for each in shown:
        page.figure(attention_figure(each), f"attention of {each.method} over {each.attention.trial}")


def add_making(page: Page, more: Mapping[str, str], shown: Sequence[Exhibit]) -> None:
    """Add how the report was made: the command, versions, seeds and hashes."""
    page.section("How this was made")
    values = {"command": command_line(), **more, "rtbrain": __version__, "python": sys.version.split()[0]}
    for package in _PACKAGES:
        try:
            values[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    values["program (SHA-256 of its source)"] = program()["rtbrain"]
    values |= {f"templates {each.name} (SHA-256)": fingerprint(each.templates) for each in shown}
    page.facts(values)


def command_line() -> str:
    """Return the command as it was typed, without the folder of the program."""
    import shlex

    return shlex.join(["rtbrain", *sys.argv[1:]]) if "rtbrain" in sys.argv[0] else "called from Python"
