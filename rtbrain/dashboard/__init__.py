"""A web page that watches what a live decoder publishes."""
