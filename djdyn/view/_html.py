"""Values as HTML that says what they are and nothing more."""

import base64
import html
import re
import zlib
from collections.abc import Sequence
from importlib import resources
from typing import Any

import numpy as np


def inline(text: str) -> str:
    """Escaped text, with `code` between backticks."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(text))


def heading(title: str, most: int = 40) -> str:
    """Return the subject of a title, for contents: what stands before its details."""
    subject = re.split("[:;]", title.replace("`", ""))[0].strip()
    if len(subject) > most:
        subject = re.split(r" \(|,", subject)[0]
    if len(subject) > most:
        subject = subject[:most].rpartition(" ")[0] + " …"
    return subject


def cell(value: Any, digits: int = 6, prefix: str = "", css: str = "") -> str:
    """A cell of a table; None is a dash."""
    if value is None:
        return '<td class="number none">–</td>'
    if isinstance(value, str | bool):
        return f'<td class="{css}">{inline(str(value))}</td>'
    if np.ndim(value) == 0 and np.asarray(value).dtype.kind in "iuf":
        whole = np.asarray(value).dtype.kind in "iu"
        number = str(int(value)) if whole else f"{float(value):.{digits}g}"
        number = number.replace("-", "−").replace("nan", "NaN")
        return f'<td class="number">{prefix}{number}</td>'
    return f"<td>{inline(str(value))}</td>"


def script(text: str) -> str:
    """JSON that no HTML parser can leave early."""
    return text.replace("<", "\\u003c")


def packed(package: str, path: str, needed: Sequence[Any]) -> str:
    """A package's own script, deflated, when something on the page needs it."""
    if not needed:
        return ""
    source = (resources.files(package) / path).read_bytes()
    return base64.b64encode(zlib.compress(source, 9)).decode()
