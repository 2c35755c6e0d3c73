"""Each fault of a script strikes the samples that it names, and no others, however they are cut."""

import numpy as np
import pytest

from rtbrain.config import parse
from rtbrain.errors import ConfigError
from rtbrain.faults import Faults, load_faults
from rtbrain.injection import Injector, Rows, described
from rtbrain.messages import StreamInfo
from tests.conftest import ROOT

INFO = StreamInfo(100.0, ("Fz", "Cz", "Pz"), "V")
N = 1000
AT = np.arange(N) / 100


def script(**faults) -> Faults:
    return parse(Faults, faults, "the test's script")


def rows() -> Rows:
    data = np.arange(N)[:, None] * 1e-6 + np.array([0.0, 0.1, 0.2])
    return Rows(data, AT, AT.copy(), AT.copy())


def inject(faults: Faults, size: int = N) -> Rows:
    injector, source = Injector(faults, INFO), rows()
    parts = [injector.process(source.take(slice(i, i + size))) for i in range(0, N, size)]
    return Rows(*(np.concatenate([getattr(p, f) for p in parts]) for f in ("data", "at_s", "stamps_s", "due_s")))


def number(out: Rows) -> np.ndarray:
    """Return which samples these are."""
    return np.rint(out.at_s * 100).astype(int)


EVERYTHING = script(
    seed=3,
    loss=[{"at_s": 1, "for_s": 2, "share": 0.3}],
    duplicate=[{"at_s": 2, "for_s": 1, "share": 0.5}],
    jitter=[{"at_s": 0.5, "ms": 4}],
    rate_error=[{"at_s": 3, "for_s": 2, "percent": 1}],
    burst=[{"at_s": 4, "for_s": 1}],
    stall=[{"at_s": 6, "for_s": 3}],
    clock_step=[{"at_s": 7, "step_s": -60}],
    dead=[{"at_s": 1.5, "for_s": 2, "channels": ["Cz"]}],
    pop=[{"at_s": 5, "for_s": 0.1, "channels": ["Fz"]}],
    not_finite=[{"at_s": 8, "for_s": 0.5, "channels": ["Pz"], "value": "inf"}],
    scale=[{"at_s": 9, "factor": 1e6}],
)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_any_cutting_gives_the_same(size):
    whole, cut = inject(EVERYTHING), inject(EVERYTHING, size)
    for field in ("data", "at_s", "stamps_s", "due_s"):
        assert np.array_equal(getattr(whole, field), getattr(cut, field))


def test_no_fault_changes_nothing():
    out, source = inject(Faults()), rows()
    assert np.array_equal(out.data, source.data)
    assert np.array_equal(out.stamps_s, source.stamps_s)
    assert np.array_equal(out.due_s, source.due_s)


def test_the_input_is_left_alone():
    source = rows()
    Injector(EVERYTHING, INFO).process(source)
    assert np.array_equal(source.data, rows().data)
    assert np.array_equal(source.stamps_s, AT)


def test_loss():
    out = number(inject(script(loss=[{"at_s": 1, "for_s": 0.5}])))
    assert out.tolist() == [*range(100), *range(150, N)]
    some = number(inject(script(loss=[{"at_s": 1, "for_s": 5, "share": 0.1}])))
    assert 20 < N - len(some) < 90
    assert set(range(100)) | set(range(600, N)) <= set(some.tolist())


def test_duplicates_have_the_same_stamps():
    out = inject(script(duplicate=[{"at_s": 1, "for_s": 0.5}]))
    assert len(out) == N + 50
    assert number(out)[100:104].tolist() == [100, 100, 101, 101]
    assert out.stamps_s[100] == out.stamps_s[101]


def test_jitter_is_of_stamps_only():
    out = inject(script(jitter=[{"at_s": 1, "for_s": 5, "ms": 3}]))
    stray = out.stamps_s - AT
    assert stray[100:600].std() == pytest.approx(0.003, rel=0.2)
    assert not stray[:100].any()
    assert not stray[600:].any()
    assert np.array_equal(out.due_s, AT)


def test_a_wrong_rate_stays_behind():
    out = inject(script(rate_error=[{"at_s": 2, "for_s": 5, "percent": 2}]))
    assert out.stamps_s[200] == AT[200]
    assert out.stamps_s[450] == pytest.approx(AT[450] + 0.05)
    assert out.stamps_s[-1] == pytest.approx(AT[-1] + 0.1)
    assert np.array_equal(out.stamps_s, out.due_s)


def test_a_burst_comes_late_and_at_once_with_true_stamps():
    out = inject(script(burst=[{"at_s": 2, "for_s": 5}]))
    assert np.array_equal(out.stamps_s, AT)
    assert np.allclose(out.due_s[200:700], 7.0)
    assert np.array_equal(out.due_s[700:], AT[700:])


def test_a_stall_and_a_clock_step():
    out = inject(script(stall=[{"at_s": 2, "for_s": 3}], clock_step=[{"at_s": 4, "step_s": -60}]))
    assert np.allclose(out.due_s, AT + np.where(AT >= 2, 3, 0))
    assert np.allclose(out.stamps_s, out.due_s - np.where(AT >= 4, 60, 0))


def test_electrodes():
    out, clean = inject(EVERYTHING), rows()
    fault = script(
        dead=[{"at_s": 1, "for_s": 2, "channels": ["Cz"]}],
        pop=[{"at_s": 4, "for_s": 0.5, "channels": ["Fz"], "uv": 5000}],
        not_finite=[{"at_s": 6, "for_s": 1, "channels": ["Pz"]}, {"at_s": 8, "for_s": 1, "value": "inf"}],
        scale=[{"at_s": 9.5, "factor": 1e6}],
    )
    out = inject(fault)
    expected = clean.data.copy()
    expected[100:300, 1] = expected[100, 1]
    expected[400:450, 0] += 5e-3  # the recording is in volts
    expected[600:700, 2] = np.nan
    expected[800:900] = np.inf
    expected[950:] *= 1e6
    assert np.allclose(out.data, expected, rtol=1e-12, equal_nan=True)


def test_swapped_labels_and_a_wrong_unit():
    info = described(INFO, script(swapped_labels=[["Fz", "Pz"]], declared_unit="uV"))
    assert info == StreamInfo(100.0, ("Pz", "Cz", "Fz"), "uV")


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ({"loss": [{"at_s": -1}]}, "loss.0.at_s"),
        ({"loss": [{"at_s": 1, "share": 2}]}, "loss.0.share"),
        ({"explosion": [{"at_s": 1}]}, "explosion"),
        ({"burst": [{"at_s": 1}]}, "burst.0.for_s"),
        ({"dead": [{"at_s": 1, "channel": "Cz"}]}, "dead.0.channel"),
    ],
)
def test_a_wrong_script_is_refused(faults, said):
    with pytest.raises(ConfigError, match=said):
        script(**faults)


def test_channels_that_are_not_there_are_refused():
    with pytest.raises(ConfigError, match=r"XX.*Fz, Cz, Pz"):
        Injector(script(dead=[{"at_s": 1, "channels": ["XX"]}]), INFO)


def test_the_example_is_a_script_with_every_kind(tmp_path):
    example = load_faults(ROOT / "configs" / "faults.yaml")
    assert [name for name, value in vars(example).items() if value == () or value is None] == []
