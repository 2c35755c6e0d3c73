"""Where results go: ZeroMQ, LSL and the session log."""
