"""Measurements of speed, apart from the tests: ratios to peers in one run."""
