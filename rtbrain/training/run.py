"""A training run: one epoch after the other, with all that the next one rests on."""

import math
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import chain
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from rtbrain.errors import ConfigError
from rtbrain.messages import IntArray
from rtbrain.tokens.inputs import Inputs
from rtbrain.training.batches import Batch, TokenSequence, collate, contexts, crops_like, training_batches
from rtbrain.training.fit_settings import TrainSettings
from rtbrain.training.head_start import point_at_classes, read_classes, weigh_tokens
from rtbrain.training.head_start_pairs import detect_pairs, quiet_attributes
from rtbrain.training.initial import look_at_neighbours
from rtbrain.training.losses import Adversary, class_loss, class_weights, refuse_infinite, reversal_strength
from rtbrain.training.model import BrainToken
from rtbrain.training.stopping import WARM_UP, Stopping, judged


def pick_device(name: Literal["auto", "cpu", "cuda"]) -> torch.device:
    """Return the device to train on: a GPU if there is one, unless told otherwise."""
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device cuda was asked for, but torch finds no GPU; set the device to auto or cpu")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


class Run:
    """A training run between two epochs; see `rtbrain.training.fit.train_model` for what it is given."""

    def __init__(
        self,
        train: Sequence[TokenSequence],
        validation: Sequence[TokenSequence],
        settings: TrainSettings,
        seed: int,
        target: Sequence[TokenSequence],
    ) -> None:
        self._train, self._validation, self._settings, self._seed = train, validation, settings, seed
        self._target = target
        self._device = pick_device(settings.device)
        self._people = {name: i for i, name in enumerate(sorted({each.person for each in train}))}
        n_domains = len(self._people) if settings.adversary == "inductive" else 0
        self._adversary = Adversary(settings.adversary, n_domains)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self._model = BrainToken(replace(settings.model, domains=self._adversary.domains))
        if settings.head_start:
            look_at_neighbours(self._model)
        self._standardise()
        self._model.to(self._device)
        self._average = deepcopy(self._model)
        self._best = deepcopy(self._model.state_dict())
        self._optimizer = torch.optim.AdamW(
            self._rated_parameters(), weight_decay=settings.weight_decay, betas=(0.9, 0.98)
        )
        # Half precision needs scaled gradients, bfloat16 does not; neither is used on a CPU.
        self._half = torch.bfloat16 if self._device.type == "cpu" or torch.cuda.is_bf16_supported() else torch.float16
        self._scaler = torch.amp.GradScaler(
            self._device.type, enabled=self._device.type == "cuda" and self._half == torch.float16
        )
        weights = settings.alpha or class_weights([each.label for each in train], settings.model.n_classes)
        self._weights = torch.tensor(weights, dtype=torch.float32, device=self._device)
        self.epoch = self._steps = 0
        # The start has not adapted to anybody, so it is no answer of a model that is to adapt.
        has_answer = settings.head_start and not self._adversary.domains
        self._stopping = Stopping(settings.epochs, settings.patience, has_answer)
        self.start: dict[str, float] = {}
        self.history: list[dict[str, float]] = []

    def _rated_parameters(self) -> list[dict[str, Any]]:
        """Return the parameters of the model and of the domain head, with their learning rates."""
        settings, named = self._settings, list(self._model.named_parameters())
        head = [each for name, each in named if name.startswith("domain.")]
        body = [each for name, each in named if not name.startswith("domain.")]
        rated: list[dict[str, Any]] = [{"params": body, "full_lr": settings.learning_rate}]
        if head:
            rated.append({"params": head, "full_lr": settings.adversary_rate or settings.learning_rate})
        return rated

    def _standardise(self) -> None:
        values = np.concatenate([piece.attributes for each in self._train for piece in each.pieces]).astype(np.float64)
        if values.shape[1]:
            centre, spread = (torch.from_numpy(each).float() for each in (values.mean(0), values.std(0)))
            self._model.embedding.standardise(centre, spread.clamp(min=1e-6))

    def begin(self) -> None:
        """Give the model its head start, which may be the best already, if it has one; look at validation people."""
        if self._settings.head_start:
            self._give_head_start()
        self.start = self._validate()

    def _give_head_start(self) -> None:
        settings, model = self._settings, self._model.cpu()
        crops = [contexts(each, settings.context_s) for each in self._train]
        rows = [row for row, own in enumerate(crops) for _ in own]
        whole = list(_batched([crop for own in crops for crop in own], rows, settings.batch))
        if settings.model.counts_pairs:
            quiet_attributes(model)
            counting = detect_pairs(model, whole[0]) if settings.model.sees_neighbours else None
            scores = point_at_classes(model, whole, *self._told(whole), self._seed, counting)
        else:
            scores = weigh_tokens(model, whole, *self._told(whole), self._seed)
        # Shorter ones as well, or the classifier would be far too sure of what it sees in the first seconds.
        lengths, rng = (settings.shortest_s, settings.context_s), np.random.default_rng(self._seed)
        seen = [*whole, *training_batches(self._train, settings.batch, lengths, rng, prefix_share=1.0)]
        with torch.no_grad():
            features = torch.cat([model.features(batch.ids, batch.attributes) for batch in seen])
        read_classes(model, features, scores(seen), *self._told(seen), self._seed)
        model.to(self._device)
        self._average.load_state_dict(model.state_dict())

    @property
    def over(self) -> bool:
        """Whether this was the last epoch."""
        return self._stopping.is_over(self.epoch)

    @property
    def best_epoch(self) -> int:
        """The epoch whose weights are kept, so far."""
        return self._stopping.best_epoch

    def _told(self, batches: Sequence[Batch]) -> tuple[IntArray, list[str]]:
        """Return class and person of every crop."""
        trials = [self._train[row] for batch in batches for row in batch.rows]
        return np.array([each.label for each in trials]), [each.person for each in trials]

    def train_epoch(self) -> None:
        """Go over the training trials as often as an epoch does, and look at the validation people."""
        settings = self._settings
        rng = np.random.default_rng([self._seed, self.epoch])
        lengths = (settings.shortest_s, settings.context_s)
        plan = (settings.batch, lengths, rng, settings.prefix_share)
        n_batches = settings.passes * max(1, -(-len(self._train) // settings.batch))
        losses, sizes = [], []
        self._model.train()
        with torch.random.fork_rng(devices=[self._device] if self._device.type == "cuda" else []):
            torch.manual_seed(int(rng.integers(2**62)))
            passes = (training_batches(self._train, *plan) for _ in range(settings.passes))
            for i, batch in enumerate(chain.from_iterable(passes)):
                share = min(1.0, (self.epoch + i / n_batches) / settings.epochs)
                losses.append(self._step(batch, share, rng))
                sizes.append(len(batch.rows))
        self.epoch += 1
        mean = float(np.average(losses, weights=sizes))
        self.history.append({"loss": mean, **self._validate()})

    def _validate(self) -> dict[str, float]:
        """Return how the averaged weights do on validation people, and keep the best."""
        loss, accuracy = judged(self._average, self._validation, self._settings.context_s)
        if self._stopping.is_best(self.epoch, loss):
            self._best = deepcopy(self._average.state_dict())
        return {"validation_loss": loss, "accuracy": accuracy}

    def _step(self, batch: Batch, progress: float, rng: np.random.Generator) -> float:
        settings, device = self._settings, self._device
        for group in self._optimizer.param_groups:
            group["lr"] = group["full_lr"] * _rate(progress)
        labels = torch.tensor([self._train[row].label for row in batch.rows], device=device)
        with self._autocast():
            features = self._features(batch)
            logits = self._model.classifier(features)
        loss = class_loss(settings.loss, logits.float(), labels, self._weights, settings.smoothing)
        total = loss
        if self._adversary.domains:
            total = loss + settings.adversary_weight * self._domain_loss(features, batch, progress, rng)
        refuse_infinite(total, self.epoch + 1, settings.learning_rate)
        self._optimizer.zero_grad(set_to_none=True)
        self._scaler.scale(total).backward()  # type: ignore[no-untyped-call]
        self._scaler.unscale_(self._optimizer)
        nn.utils.clip_grad_norm_(self._model.parameters(), 1.0)
        self._scaler.step(self._optimizer)
        self._scaler.update()
        self._steps += 1
        # Early on the mean forgets faster: it is then of a few steps only.
        decay = min(settings.averaging, self._steps / (self._steps + 9))
        with torch.no_grad():
            for mean, value in zip(self._tensors(self._average), self._tensors(self._model), strict=True):
                mean.lerp_(value, 1 - decay) if mean.is_floating_point() else mean.copy_(value)
        return float(loss.detach())

    def _domain_loss(self, features: Tensor, batch: Batch, progress: float, rng: np.random.Generator) -> Tensor:
        domain = [self._people[self._train[row].person] for row in batch.rows]
        if self._adversary.mode == "transductive":
            with self._autocast():
                other = self._features(crops_like(batch, self._target, rng))
            features, domain = torch.cat([features, other]), [0] * len(features) + [1] * len(other)
        assert self._model.domain is not None
        scores = self._model.domain(features.float(), reversal_strength(progress))
        return self._adversary.loss(scores, torch.tensor(domain, device=self._device))

    def _features(self, batch: Batch) -> Tensor:
        here = batch.to(self._device)
        return self._model.features(here.ids, here.attributes)

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self._device.type, dtype=self._half, enabled=self._device.type == "cuda")

    def _tensors(self, model: nn.Module) -> list[Tensor]:
        return list(model.state_dict().values())

    def state(self) -> dict[str, Any]:
        """Return all that the next epoch rests on."""
        return {
            "model": self._model.state_dict(),
            "average": self._average.state_dict(),
            "best": self._best,
            "optimizer": self._optimizer.state_dict(),
            "scaler": self._scaler.state_dict(),
            "counts": [self.epoch, self._steps],
            "stopping": [self._stopping.best_epoch, self._stopping.best_loss],
            "start": self.start,
            "history": self.history,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue where `state` was taken."""
        self._model.load_state_dict(state["model"])
        self._average.load_state_dict(state["average"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._scaler.load_state_dict(state["scaler"])
        self._best = state["best"]
        self.epoch, self._steps = state["counts"]
        self._stopping.best_epoch, self._stopping.best_loss = state["stopping"]
        self.start, self.history = state["start"], state["history"]

    def best_model(self) -> BrainToken:
        """Return the model of the best epoch, on the CPU."""
        self._average.load_state_dict(self._best)
        return self._average.cpu().eval()


def _batched(crops: Sequence[Inputs], rows: Sequence[int], size: int) -> Iterator[Batch]:
    for start in range(0, len(crops), size):
        yield collate(crops[start : start + size], rows[start : start + size])


def _rate(progress: float) -> float:
    """Return the factor on the learning rate: up over the first steps, then down along a cosine."""
    if progress < WARM_UP:
        return (progress + 0.002) / (WARM_UP + 0.002)
    return 0.5 * (1 + math.cos(math.pi * (progress - WARM_UP) / (1 - WARM_UP)))
