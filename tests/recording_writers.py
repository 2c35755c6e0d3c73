"""Recordings in every format, from the same samples, and how to read them back."""

from pathlib import Path

import edfio
import eeglabio.raw
import mne
import numpy as np
import pybv

RATE = 250
NAMES = ["Fz", "Cz", "Pz", "Oz"]
INDEX = 3  # the channel whose value is its own row, in microvolts


def samples(n: int = 2500, n_channels: int = 4) -> np.ndarray:
    """Return (channels, n) microvolts; channel INDEX counts its samples."""
    x = np.random.default_rng(7).normal(0, 20, (n_channels, n))
    x[INDEX] = np.arange(n)
    return x


def write_edf(path: Path, x: np.ndarray, names=NAMES, *, dimensions=None, rates=None, annotate=False) -> Path:
    bdf = path.suffix == ".bdf"
    signal = edfio.BdfSignal if bdf else edfio.EdfSignal
    signals = [
        signal(
            row,
            rates[i] if rates else RATE,
            label=names[i],
            physical_dimension=dimensions[i] if dimensions else "uV",
            physical_range=(-6553.6, 6553.4),
        )
        for i, row in enumerate(x)
    ]
    annotations = [edfio.EdfAnnotation(1.0, None, "eyes closed")] if annotate else ()
    (edfio.Bdf if bdf else edfio.Edf)(signals, annotations=annotations).write(path)
    return path


def write_vhdr(path: Path, x: np.ndarray, names=NAMES) -> Path:
    pybv.write_brainvision(
        data=x * 1e-6, sfreq=RATE, ch_names=list(names), fname_base=path.stem, folder_out=path.parent, resolution=0.1
    )
    return path


def write_set(path: Path, x: np.ndarray, names=NAMES, *, marks=()) -> Path:
    """`marks`: (text, onset in s, duration in s)."""
    annotations = [np.array(column) for column in zip(*marks, strict=True)] if marks else None
    eeglabio.raw.export_set(str(path), x * 1e-6, RATE, list(names), annotations=annotations)
    return path


def raw_array(x: np.ndarray, names=NAMES, types="eeg", first_samp: int = 0):
    info = mne.create_info(list(names), RATE, types)
    return mne.io.RawArray(x * 1e-6, info, first_samp=first_samp, verbose="ERROR").set_meas_date(1e9)


def write_fif(path: Path, x: np.ndarray, names=NAMES, types="eeg") -> Path:
    raw_array(x, names, types).save(path, verbose="ERROR")
    return path


WRITERS = {".edf": write_edf, ".bdf": write_edf, ".vhdr": write_vhdr, ".set": write_set, "_raw.fif": write_fif}


def read(recording, size=None, seed=0):
    """Return data (n, channels) and times (n,), after checking what every source promises."""
    chunks = list(recording.chunks(size, seed))
    data, times = (np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("data", "times"))
    assert all(chunk.data.flags.c_contiguous and chunk.data.dtype == np.float64 for chunk in chunks)
    assert [chunk.start for chunk in chunks] == np.cumsum([0, *map(len, chunks)])[:-1].tolist()
    assert len(data) == len(times) == recording.n_samples
    return data, times
