"""A body towed on a long line: its steady shape, and depth control by a winch.

Read `study`, then `model` (line, body, closed forms).
"""
