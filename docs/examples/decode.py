"""Decode from Python: push chunks as they come, get the decisions that fell due."""

import sys

from rtbrain import Decoder
from rtbrain.decoder.bundle import load_bundle
from rtbrain.decoder.find import find_bundle
from rtbrain.sources.synthetic import Synthetic, SyntheticSettings

bundle = load_bundle(find_bundle(sys.argv[1]))
amplifier = Synthetic(SyntheticSettings(bundle.rates_hz[0], bundle.templates.channels, duration_s=25.0))  # your device
decoder = Decoder(bundle, rate_hz=amplifier.info.rate_hz, channels=amplifier.info.channels, unit="uV")
for chunk in amplifier.chunks(25):
    for decision in decoder.push(chunk.data, chunk.times):
        print(f"{decision.signal_s:.1f} s: {decision.label} {decision.probabilities} {decision.reasons or 'trusted'}")
