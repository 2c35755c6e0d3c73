"""A population of simulated people, whose recordings can be asked for one by one."""

from collections.abc import Sequence

import numpy as np

from rtbrain.errors import ConfigError
from rtbrain.messages import FloatArray
from rtbrain.simulation.confound import Confound
from rtbrain.simulation.eeg import Interval, Signal
from rtbrain.simulation.head import make_head
from rtbrain.simulation.optimum import Draws, Optimum, draw, optimum
from rtbrain.simulation.population import Design, Traits, draw_subjects, draw_trials
from rtbrain.simulation.seeding import generator


class World:
    """People with a design's microstates.

    A person has the same head, maps and rates in all recordings. Everything follows from the seed, the person, the
    recording's number and its labels; asking for other recordings in between changes nothing. What is drawn does not
    depend on the label: the same trial under two labels shows what the label does, and with effect 0 that is nothing.

    Parameters
    ----------
    design : Design
        What the labels do, and how people differ; the defaults if left out.
    seed : int
        From 0 on.
    """

    def __init__(self, design: Design | None = None, seed: int = 0) -> None:
        self.design = design or Design()
        self.seed = seed
        generator(seed, "world")  # refuses a seed that is none
        self._groups: dict[int, int] = {}  # label of each subject so far, for designs with labels by subject
        self._draws: dict[tuple[float, int], Draws] = {}

    def trial(
        self,
        subject: int,
        label: int,
        trial: int,
        channels: tuple[str, ...],
        rate_hz: float,
        seconds: float,
        confound: Confound | None = None,
    ) -> Signal:
        """Return one trial of a person as a recording of its own.

        Parameters
        ----------
        subject, trial : int
            Who, and which recording of theirs; from 0 on.
        label : int
            Class of the design, from 0 on.
        channels : tuple of str
            Electrodes of the 10-05 system in any usual spelling; CB1 and CB2 of SEED's cap as well.
        rate_hz, seconds : float
            Sampling rate and length.
        confound : Confound, optional
            What the recording chain does to it.
        """
        return self.session(subject, [(seconds, label)], channels, rate_hz, recording=trial, confound=confound)

    def session(
        self,
        subject: int,
        segments: Sequence[tuple[float, int | None]],
        channels: tuple[str, ...],
        rate_hz: float,
        recording: int = 0,
        confound: Confound | None = None,
    ) -> Signal:
        """Return one recording in which segments (seconds, label) follow each other; label None is rest.

        `recording` counts a person's recordings: two with the same number have the same noise. The answer's `truth`
        says what happens when.
        """
        wrong = [seconds for seconds, _ in segments if not (seconds > 0 and np.isfinite(seconds))]
        if wrong or not segments:
            raise ConfigError(f"a recording is made of segments longer than 0 s; got {wrong[0] if wrong else 'none'}")
        if not (rate_hz > 0 and np.isfinite(rate_hz)):
            raise ConfigError(f"rate_hz is {rate_hz!r}; it must be a positive number")
        for _, label in segments:
            self._check_group(subject, label)
        person = self._person(subject)
        traits: list[Traits] = []
        truth: list[Interval] = []
        at = 0.0
        for i, (seconds, label) in enumerate(segments):
            level = np.array([self.design.level(label)])
            rng = generator(self.seed, "trial", subject, recording, i)
            traits.append(draw_trials(self.design, person, level, rng))
            truth.append(Interval(at, at + seconds, label))
            at += seconds
        n_samples = round(at * rate_hz)
        if not n_samples:
            raise ConfigError(f"{at:g} s at {rate_hz:g} Hz hold no sample")
        look = self.design.eeg
        own = generator(self.seed, "look", subject).standard_normal(2)
        return Signal(
            channels=tuple(channels),
            rate_hz=float(rate_hz),
            n_samples=n_samples,
            truth=tuple(truth),
            design=self.design,
            head=make_head(look, self.design.n_states, tuple(channels), self.seed, subject),
            traits=tuple(traits),
            seed=self.seed,
            key=(subject, recording),
            amplitude_uv=float(look.amplitude_uv * np.exp(look.amplitude_sd * own[0])),
            alpha_hz=float(max(1.0, look.alpha_hz + look.alpha_sd_hz * own[1])),
            confound=confound,
        )

    def bayes_optimal(self, seconds: float, mix: FloatArray | None = None, n_draws: int = 2000) -> Optimum:
        """Return how well the class of one trial can be told at best, knowing the population but not the person.

        Parameters
        ----------
        seconds : float
            Length of what the observer sees of a trial: the crop, where there is one.
        mix : (labels, classes) array, optional
            For a task that groups the labels: how many trials of each label (rows) are in each class (columns).
            Left out: each label is a class, all equally frequent.
        n_draws : int
            Simulated trials; 2000 leave a standard error below 0.005.
        """
        if (seconds, n_draws) not in self._draws:
            self._draws[seconds, n_draws] = draw(self.design, seconds, n_draws, generator(self.seed, "observer"))
        return optimum(self._draws[seconds, n_draws], np.eye(self.design.n_classes) if mix is None else mix)

    def _person(self, subject: int) -> Traits:
        return draw_subjects(self.design, 1, generator(self.seed, "person", subject))

    def _check_group(self, subject: int, label: int | None) -> None:
        if self.design.labels == "subject" and label is not None:
            known = self._groups.setdefault(subject, label)
            if known != label:
                raise ConfigError(
                    f"subject {subject} is of group {known} and cannot be of group {label} as well; this design has "
                    "its labels by subject"
                )
