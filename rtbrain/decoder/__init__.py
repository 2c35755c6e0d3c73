"""From tokens to probabilities: the exported model and its state, without torch."""
