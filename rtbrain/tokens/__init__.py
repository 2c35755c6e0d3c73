"""From labels to Brain Tokens."""
