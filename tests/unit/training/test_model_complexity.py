"""Parameters and operations against the paper's table and against torch's own counter."""

from collections.abc import Callable

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from rtbrain.training.baselines import baseline
from rtbrain.training.complexity import CHANNELS, PAPER, baseline_flops, brain_token_flops, complexity_table
from rtbrain.training.complexity_others import full_table
from rtbrain.training.methods import METHODS
from rtbrain.training.model_settings import PRESETS
from rtbrain.training.plain_model import plain_logits
from tests.unit.training.model_cases import batch, random_model


def counted(run: Callable[[], object]) -> int:
    """Count the operations of matrix products; torch does not count those inside its fused attention."""
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH), torch.no_grad():
        run()
    return counter.get_total_flops()


def test_the_table_agrees_with_the_paper() -> None:
    rows = {row.name: row for row in complexity_table() if not row.savings}
    for name, (thousands, megabytes, gflops) in PAPER.items():
        row = rows[name]
        assert round(row.parameters / 1e3, 2) == thousands
        assert row.size_mb == pytest.approx(megabytes, abs=0.0051)
        assert row.flops / 1e9 == pytest.approx(gflops, abs=0.0051)


def test_counts_are_exactly_those_of_the_structures() -> None:
    rows = {row.name: row for row in complexity_table() if not row.savings}
    assert {name: row.parameters for name, row in rows.items()} == {
        "cnn": 86_978,
        "lstm": 166_530,
        "transformer": 100_482,
        "dann": 109_123,
        "deepcoral": 100_482,
        "paper-table": 206_403,
        "paper-text": 173_635,
        "rtbrain": 29_858,
    }
    assert rows["paper-table"].flops / 1e9 == pytest.approx(13.609, abs=5e-4)
    assert rows["paper-text"].flops / 1e9 == pytest.approx(6.32, abs=5e-3)


def test_savings_halve_the_operations_and_leave_the_parameters() -> None:
    rows = {(row.name, row.savings): row for row in complexity_table()}
    assert rows["paper-text", True].flops <= 3.5e9
    for name in ("paper-text", "paper-table"):
        assert rows[name, True].parameters == rows[name, False].parameters
        assert 0.49 < rows[name, True].flops / rows[name, False].flops < 0.51


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("n", [37, 60, 300, 500])
def test_formulas_count_what_torch_counts(name: str, n: int) -> None:
    model = random_model(name)
    ids, attributes = batch(model, [n], n)
    assert counted(lambda: model(ids, attributes)) == brain_token_flops(model.settings, n)
    plain = counted(lambda: plain_logits(model, ids[0], attributes[0]))
    assert plain == brain_token_flops(model.settings, n, savings=False)


@pytest.mark.parametrize("ablation", [{"aggregation": False}, {"transitions": False}])
def test_formulas_count_ablations(ablation: dict[str, bool]) -> None:
    model = random_model("paper-text", **ablation)
    ids, attributes = batch(model, [150], 150)
    assert counted(lambda: model(ids, attributes)) == brain_token_flops(model.settings, 150)


@pytest.mark.parametrize("name", ["cnn", "transformer"])  # torch counts no operations of an LSTM
def test_formulas_of_the_baselines_count_what_torch_counts(name: str) -> None:
    model = baseline(name, (4,), 2).eval()
    assert counted(lambda: model(torch.ones(1, 150, dtype=torch.int64))) == baseline_flops(name, 150)


def test_all_methods_that_decode_are_in_the_full_table() -> None:
    rows = {row.name: row for row in full_table()}
    same = {"paper-scratch"}  # paper-text, trained in another way
    assert rows.keys() == METHODS.keys() - {"majority", "nuisance"} - same
    assert rows["band-power"].parameters == 6 * CHANNELS + 1  # six bands inside the default recipe's, and a bias
    assert "6 bands of 8 states" in rows["rtbrain"].about, "the tokens that the method of this name reads"
    assert rows["microstate-stats"].parameters == 4 * 3 + 4 * 3 + 1  # three statistics and the transitions
    temporal, spatial, separable = 8 * 64, 16 * CHANNELS, 16 * 16 + 16 * 16
    assert rows["eegnet"].parameters == temporal + spatial + separable + 2 * (8 + 16 + 16) + 2 * (16 * 8 + 1)
