"""From the amplifier's samples to clean ones on an even grid, one stage per file."""
