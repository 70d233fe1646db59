"""Models for other programs: `c_source` writes C99 for real-time targets."""
