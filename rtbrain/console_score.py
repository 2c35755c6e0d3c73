"""What `rtbrain session score` shows."""

from collections.abc import Sequence

from rtbrain.console import console, table
from rtbrain.session_score import STEADY_S, Said, Score, letters_of, strip
from rtbrain.session_truth import SessionTruth

_WIDEST = 96
_MARGIN = 9


def show_score(score: Score, said: Sequence[Said], truth: SessionTruth) -> None:
    """Print truth and answers side by side, how good and how fast the answers were, and what the figures mean."""
    true, told = strip(said, truth, max(20, min(_WIDEST, console.width - _MARGIN)))
    names = ", ".join(f"{letter} {name}" for name, letter in letters_of(truth.classes).items())
    seconds = truth.stretches[-1].stop_s - truth.stretches[0].start_s
    console.print(f"{seconds:g} s in {len(truth.stretches)} stretches ({names}):", markup=False)
    console.print(f"truth    {true}\ndecoded  {told}", markup=False)
    console.print(_accuracy(score, truth), markup=False)
    if score.changes:
        rows = table("change at", "to", "followed after")
        for each in score.changes:
            delay = "not at all" if each.delay_s is None else f"{each.delay_s:.1f} s"
            rows.add_row(f"{each.at_s:g} s", each.state, delay)
        console.print(rows)
        console.print(f"(followed: the answer is the new state and stays so for {STEADY_S:g} s of signal)")
    ages = "unknown" if score.age_p50_ms is None else f"p50 {score.age_p50_ms:.1f} ms, p99 {score.age_p99_ms:.1f} ms"
    console.print(
        f"{score.tokens} tokens, {score.tokens_per_s:.1f} per second of signal; age of the newest sample when a "
        f"decision was published: {ages}"
    )


def _accuracy(score: Score, truth: SessionTruth) -> str:
    lines = []
    if score.pure_accuracy is not None:
        lines.append(
            f"accuracy {score.pure_accuracy:.3f} of the {score.pure_decisions} decisions that rest on one state (the "
            "context reaches back to no other)"
        )
    if truth.best is not None and score.way is not None:
        above = " (a mean over people: one session may lie above it)" if score.way > 1 else ""
        lines.append(
            f"  at best {truth.best.accuracy:.3f}{above} for somebody who never met this person and sees "
            f"{truth.best.seconds:g} s; chance {truth.chance:.3f}: {score.way:.0%} of the way from chance to the best"
        )
    lines.append(
        f"accuracy {score.accuracy:.3f} of all {score.decisions} decisions; after a change the context still holds "
        f"the state before. {score.trusted:.0%} of the decisions say that they may be trusted"
    )
    return "\n".join(lines)
