"""Channels by name: one electrode, many spellings."""

import numpy as np
import pytest

from rtbrain.conditioning.channels import ChannelSettings, PickChannels, canonical, canonical_channels, is_scalp
from rtbrain.errors import ChannelError, StreamError
from rtbrain.messages import Chunk, StreamInfo

TEN = ("Fp1", "Fp2", "F3", "F4", "C3", "C4", "P3", "P4", "O1", "O2")


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("Fp1", "Fp1"),
        ("FP1", "Fp1"),
        ("fp1", "Fp1"),
        (" Fp1 ", "Fp1"),
        ("EEG Fp1", "Fp1"),
        ("eeg fp1", "Fp1"),
        ("EEG:Fp1", "Fp1"),
        ("EEG_Fp1", "Fp1"),
        ("EEG Fp1-LE", "Fp1"),
        ("EEG Fp1-Ref", "Fp1"),
        ("Fp1-REF", "Fp1"),
        ("Fp1.", "Fp1"),
        ("Fc5.", "FC5"),
        ("C3..", "C3"),
        ("CZ", "Cz"),
        ("cz", "Cz"),
        ("Afz.", "AFz"),
        ("FPZ", "Fpz"),
        ("T3", "T7"),
        ("t4", "T8"),
        ("EEG T5-LE", "P7"),
        ("T6.", "P8"),
        ("T7", "T7"),
        ("P8", "P8"),
        ("T10", "T10"),
        ("Trigger 5", "TRIGGER 5"),
    ],
)
def test_every_spelling_of_an_electrode_becomes_one(spelling: str, name: str) -> None:
    assert canonical(spelling) == name
    assert canonical(name) == name


@pytest.mark.parametrize("names", [("Fp1", "FP1"), ("C3", "EEG C3-LE"), ("T3", "T7"), ("O1", "T6", "P8")])
def test_doubled_electrodes_are_refused_with_both_spellings(names: tuple[str, ...]) -> None:
    with pytest.raises(ChannelError) as error:
        canonical_channels(names)
    assert f"({names[-2]!r})" in str(error.value)
    assert f"channels {len(names) - 1} " in str(error.value)
    assert f"{len(names)} ({names[-1]!r})" in str(error.value)


def test_a_stream_with_doubled_electrodes_is_refused() -> None:
    with pytest.raises(ChannelError, match="same electrode, T7"):
        PickChannels(ChannelSettings()).open(StreamInfo(250.0, ("Cz", "T3", "Pz", "T7")))


@pytest.mark.parametrize(
    "name", ["Fp1", "Fpz", "AF7", "AFz", "F3", "FC5", "T7", "T10", "TP9", "CPz", "POO9", "Iz", "FCC5h", "AFp3h", "OI1h"]
)
def test_positions_of_the_scalp_are_known(name: str) -> None:
    assert is_scalp(canonical(name))


@pytest.mark.parametrize("name", ["A1", "M2", "EOG", "HEOG", "ECG", "STATUS", "Nz", "F", "C3-A1-A2", "F100", "X1", ""])
def test_ears_eyes_and_auxiliaries_are_no_scalp(name: str) -> None:
    assert not is_scalp(canonical(name))


def pick(names: tuple[str, ...], stream: tuple[str, ...], min_coverage: float = 0.7) -> tuple[PickChannels, StreamInfo]:
    stage = PickChannels(ChannelSettings(names, min_coverage))
    return stage, stage.open(StreamInfo(250.0, stream))


def test_columns_come_in_the_recipes_order_and_the_rest_is_left_out() -> None:
    stage, info = pick(("O2", "T7", "Fp1"), ("EEG Fp1-LE", "ECG", "EEG T3-LE", "EEG O2-LE"))
    out = stage.process(Chunk(np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]), 10, np.array([0.1, 0.2])))
    assert info.channels == ("O2", "T7", "Fp1")
    np.testing.assert_array_equal(out.data, [[4, 3, 1], [8, 7, 5]])
    assert out.data.flags.c_contiguous
    assert out.start == 10
    np.testing.assert_array_equal(out.times, [0.1, 0.2])


def test_no_names_take_the_whole_stream_in_its_order_under_canonical_names() -> None:
    stage, info = pick((), ("EEG T3-LE", "CZ", "Fc5."))
    data = np.arange(6.0).reshape(2, 3)
    assert info.channels == ("T7", "Cz", "FC5")
    np.testing.assert_array_equal(stage.process(Chunk(data)).data, data)


def test_the_same_channels_in_another_order_are_still_moved() -> None:
    stage, info = pick(("C3", "Cz", "C4"), ("C4", "Cz", "C3"))
    assert info.channels == ("C3", "Cz", "C4")
    np.testing.assert_array_equal(stage.process(Chunk(np.array([[4.0, 0.0, 3.0]]))).data, [[3, 0, 4]])


def test_channels_missing_within_the_coverage_are_reported() -> None:
    stage, info = pick(TEN, TEN[3:])  # 7 of 10: exactly the share that is needed
    assert info.channels == TEN[3:]
    assert stage.missing == TEN[:3]


def test_channels_missing_below_the_coverage_are_refused_by_name() -> None:
    with pytest.raises(ChannelError, match=r"only 6 of the recipe's 10 .* 70% .* missing: Fp1, Fp2, F3, F4; .* C3, C4"):
        pick(TEN, TEN[4:])


@pytest.mark.parametrize("stream", [("C3", "C4"), ("Cz",), ()])
def test_fewer_than_three_channels_have_no_topography(stream: tuple[str, ...]) -> None:
    with pytest.raises(ChannelError, match="at least 3"):
        pick((), stream)


def test_a_change_of_the_number_of_channels_is_refused() -> None:
    stage = PickChannels(ChannelSettings())
    stage.open(StreamInfo(250.0, ("Fz", "Cz", "Pz", "Oz")))
    with pytest.raises(StreamError, match="had 4 channels and now has 5"):
        stage.process(Chunk(np.zeros((3, 5))))


def test_an_electrode_named_twice_in_the_recipe_is_refused() -> None:
    with pytest.raises(ChannelError, match="same electrode"):
        PickChannels(ChannelSettings(("T3", "T7", "Cz", "Pz"))).open(StreamInfo(250.0, ("T7", "Cz", "Pz", "Oz")))
