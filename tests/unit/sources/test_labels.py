import pytest

from rtbrain.sources.labels import is_eeg_name, unit_name


@pytest.mark.parametrize("name", ["Fp1", "EEG T3-LE", "EEG A2-A1", "Fc5.", "A1", "TP10", "E12", "ch1", "CPz", "Oz"])
def test_electrode_names(name):
    assert is_eeg_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "STATUS",
        "ECG",
        "EKG1",
        "EEG ECG",
        "VEOGb",
        "LEOG",
        "EMG chin",
        "SaO2",
        "SpO2",
        "DC01",
        "STI 014",
        "Temp",
        "GYROX",
    ],
)
def test_names_that_are_no_electrodes(name):
    assert not is_eeg_name(name)


def test_unit_names():
    assert {unit_name(text) for text in ("uV", "µV", "μV", "microvolts", "MicroVolt", " uv ", "\x83\xcaV")} == {"uV"}
    assert [unit_name(text) for text in ("volts", "millivolts", "nV", "C", "", None, "kV")] == ["V", "mV", "nV"] + [
        "unknown"
    ] * 4
