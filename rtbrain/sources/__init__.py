"""Where samples come from: recordings and synthetic streams, both as iterators of chunks."""
