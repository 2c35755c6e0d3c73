"""Decode from Python: push chunks as they come, get the decisions that fell due."""

import sys

from rtbrain import Decoder
from rtbrain.sources.synthetic import Synthetic, SyntheticSettings

amplifier = Synthetic(SyntheticSettings(duration_s=10.0))  # stands for your device
decoder = Decoder(sys.argv[1], rate_hz=250.0, channels=amplifier.info.channels, unit="uV")
for chunk in amplifier.chunks(25):
    for decision in decoder.push(chunk.data, chunk.times):
        print(f"{decision.signal_s:.1f} s: {decision.label} {decision.probabilities} {decision.reasons or 'trusted'}")
