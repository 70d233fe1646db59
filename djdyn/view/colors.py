"""The colours that plots, figures and scenes share."""

import re


PALETTE = (
    "#2f6fb5",
    "#e1782f",
    "#2f9e73",
    "#c4455c",
    "#7a5fb0",
    "#d9a514",
    "#39a3bd",
    "#8a6a52",
    "#cf7fb0",
    "#6c7a89",
)
NEUTRALS = ("#1f2933", "#8b96a3", "#a8763e", "#5d7f70")  # references
INK = "#1f2933"
MUTED = "#6b7785"
RULE = "#dde2e8"


def checked(color: str, name: str) -> str:
    """`color`, when it is one."""
    if not re.fullmatch("#[0-9a-fA-F]{6}", color):
        raise ValueError(f"colour {color!r} of {name!r} is not of the form '#rrggbb'")
    return color


def packed(color: str) -> int:
    """`#rrggbb` as the integer 0xrrggbb."""
    return int(color[1:], 16)
