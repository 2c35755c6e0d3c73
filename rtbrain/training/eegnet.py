"""EEGNet (Lawhern et al. 2018, arXiv 1611.08024), from the paper: a network on the samples instead of tokens.

EEGNet-8,2: eight temporal filters of half a second, two spatial filters of each, and a separable convolution; a quarter
is dropped in training, as the paper does for people who were not learnt from.
"""

import torch
from torch import Tensor, nn

TEMPORAL, DEPTH, SEPARABLE = 8, 2, 16
"""F1, D and F2 of the paper."""
_LARGEST_SPATIAL, _LARGEST_DENSE = 1.0, 0.25
"""Norms that no spatial filter, and no row of the classifier, may exceed."""


class EEGNet(nn.Module):
    """Classes from windows (B, channels, samples) at about 128 Hz."""

    def __init__(self, n_channels: int, n_samples: int, n_classes: int, dropout: float = 0.25) -> None:
        super().__init__()
        spatial = TEMPORAL * DEPTH
        self.temporal = nn.Conv2d(1, TEMPORAL, (1, 64), bias=False)
        self.norm_temporal = nn.BatchNorm2d(TEMPORAL)
        self.spatial = nn.Conv2d(TEMPORAL, spatial, (n_channels, 1), groups=TEMPORAL, bias=False)
        self.norm_spatial = nn.BatchNorm2d(spatial)
        self.depthwise = nn.Conv2d(spatial, spatial, (1, 16), groups=spatial, bias=False)
        self.pointwise = nn.Conv2d(spatial, SEPARABLE, 1, bias=False)
        self.norm_separable = nn.BatchNorm2d(SEPARABLE)
        self.pool_first, self.pool_second = nn.AvgPool2d((1, 4)), nn.AvgPool2d((1, 8))
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(SEPARABLE * (n_samples // 4 // 8), n_classes)

    def features(self, windows: Tensor) -> Tensor:
        """Return what the classifier reads."""
        h = self.norm_temporal(self.temporal(_around(windows[:, None], 64)))  # (B, F1, channels, samples)
        h = self.pool_first(nn.functional.elu(self.norm_spatial(self.spatial(h))))  # (B, F1 D, 1, samples / 4)
        h = self.norm_separable(self.pointwise(self.depthwise(_around(self.dropout(h), 16))))
        features: Tensor = self.dropout(self.pool_second(nn.functional.elu(h))).flatten(1)
        return features

    def forward(self, windows: Tensor) -> Tensor:
        """Return the logits (B, classes)."""
        logits: Tensor = self.classifier(self.features(windows))
        return logits

    def limit(self) -> None:
        """Bring the weights back within the norms that the paper sets; to be called after every step of training."""
        with torch.no_grad():
            self.spatial.weight.copy_(torch.renorm(self.spatial.weight, 2, 0, _LARGEST_SPATIAL))
            self.classifier.weight.copy_(torch.renorm(self.classifier.weight, 2, 0, _LARGEST_DENSE))


def _around(h: Tensor, width: int) -> Tensor:
    """Return (..., samples) with zeros at both ends, so that a filter of this width leaves the length as it is."""
    return nn.functional.pad(h, (width // 2 - 1, width // 2))
