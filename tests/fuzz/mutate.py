"""Mutations of data, text, bytes and XML that files from outside may bring."""

import copy
import random
import re
import struct
from collections.abc import Callable
from typing import Any


HUGE = (1e9, 1e12, 10**9, 10**15, 10**30, 2**63, -(10**12), 1e308, -1e308)
ODD = (float("nan"), float("inf"), -float("inf"), 0, -1, 1e-300, -0.0, 0.5)
CODE = (
    "__import__('os').system('touch hacked')",
    "{{7*7}}",
    "${HOME}",
    "$(touch hacked)",
    "; rm -rf nothing",
    "%s%n%x",
    "</script><script>alert(1)</script>",
    "' OR 1=1 --",
    "lambda x: x",
    "eval('1')",
)
PATHS = (
    "../outside/secret.xml",
    "../outside/secret.stl",
    "../outside/secret.toml",
    "/etc/passwd",
    "/dev/zero",
    "link.xml",
    "file:///etc/passwd",
    "..",
    "a\0b",
)
UNICODE = (
    "\u202eabc",
    "żółć",
    "名前",
    "\ufeff",
    "\u2028line",
    "e\u0301",
    "😀" * 5,
    "١٢",
    "a\nb",
    "\x1b[31mred",
    "",
    " ",
    "x" * 5000,
)
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")
WORD = re.compile(r"[A-Za-z_]\w*")


def nested(rng: random.Random) -> Any:
    """Return lists or tables inside of each other, up to hundreds of them."""
    depth, value = rng.choice((3, 30, 200)), 1.0
    for _ in range(depth):
        value = [value] if rng.random() < 0.5 else {"type": value}
    return value


def hostile(rng: random.Random) -> Any:
    """Return a value that hardly any key expects."""
    return rng.choice(
        (
            lambda: rng.choice(HUGE),
            lambda: rng.choice(ODD),
            lambda: rng.choice(CODE),
            lambda: rng.choice(PATHS),
            lambda: rng.choice(UNICODE),
            lambda: rng.choice((True, False, [], {}, [[]], [{}], "1.0", "nan")),
            lambda: [rng.choice(ODD) for _ in range(rng.choice((1, 2, 3, 6)))],
            lambda: [[1.0, 2.0], [3.0]],
            lambda: [1.0, "two", {"three": 3}],
            lambda: [0.0] * rng.choice((7, 100, 20000)),
            lambda: nested(rng),
        )
    )()


def spots(data: Any) -> list[tuple[Any, Any]]:
    """Return every container of the data with each of its keys or indices."""
    found: list[tuple[Any, Any]] = []
    if isinstance(data, dict | list):
        items = data.items() if isinstance(data, dict) else enumerate(data)
        for key, value in items:
            found += [(data, key), *spots(value)]
    return found


def mutate_data(rng: random.Random, data: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of nested tables with one to three things wrong."""
    data = copy.deepcopy(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        there = spots(data)
        if not there:
            break
        holder, key = rng.choice(there)
        match rng.randrange(8):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                other = rng.choice((*UNICODE, *CODE, "type", "name", str(key) + "s"))
                holder[other] = holder.pop(key)
            case 2 if isinstance(holder, list):
                holder.insert(key, copy.deepcopy(holder[key]))
            case 3 if isinstance(holder, list):
                holder.extend([copy.deepcopy(holder[key])] * rng.choice((2, 50)))
            case 4:  # two things change places
                other, place = rng.choice(there)
                holder[key], other[place] = (
                    copy.deepcopy(other[place]),
                    copy.deepcopy(holder[key]),
                )
            case 5 if isinstance(holder[key], int | float):
                holder[key] = rng.choice((*HUGE, *ODD))
            case 6 if isinstance(holder[key], str):
                names = [h[k] for h, k in there if isinstance(h[k], str)]
                holder[key] = rng.choice((*names, *CODE, *PATHS, *UNICODE))
            case _:
                holder[key] = hostile(rng)
    return data


def mutate_text(rng: random.Random, text: str) -> str:
    """Return the text with one to three things wrong."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        lines = text.split("\n")
        at = rng.randrange(len(lines))
        match rng.randrange(11):
            case 0:
                text = text[: rng.randrange(len(text) + 1)]
            case 1:
                del lines[at]
                text = "\n".join(lines)
            case 2:
                lines[at:at] = [lines[at]] * rng.choice((1, 2, 200))
                text = "\n".join(lines)
            case 3:
                rng.shuffle(lines)
                text = "\n".join(lines)
            case 4 | 5:
                value = str(
                    rng.choice((*HUGE, *ODD, "1e999", "0x10", "1_0", "9" * 5000))
                )
                text = _replaced(rng, NUMBER, text, value)
            case 6:
                value = rng.choice((*CODE, *PATHS, *UNICODE))
                text = _replaced(rng, WORD, text, value)
            case 7:
                at = rng.randrange(len(text) + 1)
                text = text[:at] + rng.choice(UNICODE) + text[at:]
            case 8:
                at = rng.randrange(len(text) + 1)
                text = text[:at] + rng.choice("\t\0\r\"';,#<[{") + text[at:]
            case 9:
                text = text.replace(
                    *rng.choice((("\t", " "), ("\n", "\r"), (",", ";")))
                )
            case _:
                lines[at] = lines[at] * rng.choice((2, 100))
                text = "\n".join(lines)
    return text


def _replaced(rng: random.Random, what: re.Pattern, text: str, value: str) -> str:
    """Return the text with one match of a pattern replaced."""
    matches = list(what.finditer(text))
    if not matches:
        return text
    match = rng.choice(matches)
    return text[: match.start()] + value + text[match.end() :]


def mutate_bytes(rng: random.Random, data: bytes, most: int | None = None) -> bytes:
    """Return the bytes with some flipped, overwritten, inserted or cut off.

    **Arguments:**

    - `most`: how many bytes from the start are changed, where the interesting ones are.
    """
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 50))):
        n = min(len(out), most or len(out))
        if not n:
            break
        at = rng.randrange(n)
        match rng.randrange(7):
            case 0 | 1:
                out[at] ^= 1 << rng.randrange(8)
            case 2:
                out[at] = rng.choice((0, 1, 127, 128, 255))
            case 3:
                word = rng.choice((0, 1, 0x7FFF, 0x8000, 0xFFFF))
                out[at : at + 2] = struct.pack("<H", word)
            case 4:
                real = rng.choice((float("nan"), float("inf"), 1e30, -1.0, 0.0))
                out[at : at + 4] = struct.pack("<f", real)
            case 5:
                out[at:at] = rng.randbytes(rng.choice((1, 4, 600)))
            case _:
                gone = rng.choice((1, 4, 600, len(out) - at))
                del out[at : at + gone]
    return bytes(out)


def _bomb(text: str) -> str:
    """Return XML whose entities would expand to billions of letters."""
    steps = [
        f'<!ENTITY e{i} "{f"&e{i - 1};" * 10 if i else "lol" * 10}">' for i in range(10)
    ]
    root = re.sub(r'="[^"]*"', '="&e9;"', text, count=1)
    return f"<!DOCTYPE x [{''.join(steps)}]>{root}"


def _external(text: str) -> str:
    """Return XML with an entity that stands for a file outside."""
    entity = '<!DOCTYPE x [<!ENTITY e SYSTEM "../outside/secret.xml">]>'
    return entity + re.sub(r"(<\w+[^>]*>)", r"\1&e;", text, count=1)


def mutate_xml(rng: random.Random, text: str) -> str:
    """Return XML with one or two things wrong, in its elements or its letters."""
    for _ in range(rng.choice((1, 1, 2))):
        values = list(re.finditer(r'="([^"]*)"', text))
        tags = list(re.finditer(r"<\w+[^<>]*/>", text))
        match rng.randrange(10):
            case 0 | 1 | 2 if values:
                value = rng.choice(
                    (
                        *map(str, (*HUGE, *ODD)),
                        *(x.replace("<", "&lt;") for x in CODE),
                        *PATHS,
                        *(x.replace("\x1b", "") for x in UNICODE),
                        "1 " * 1000,
                    )
                )
                match = rng.choice(values)
                text = text[: match.start(1)] + value + text[match.end(1) :]
            case 3 if tags:  # twice the same, with the same name
                match = rng.choice(tags)
                text = text[: match.end()] + match[0] + text[match.end() :]
            case 4:
                n = rng.choice((20, 300, 20000))
                where = text.rfind("</")
                text = text[:where] + "<body>" * n + "</body>" * n + text[where:]
            case 5:
                text = rng.choice((_bomb, _external))(text)
            case 6:
                where = text.find(">", text.find("<mujoco") + 1) + 1
                thing = rng.choice(OUTSIDE)
                text = text[:where] + thing + text[where:]
            case 7 if values:
                a, b = rng.choice(values), rng.choice(values)
                text = text[: a.start(1)] + b[1] + text[a.end(1) :]
            case _:
                text = mutate_text(rng, text)
    return text


OUTSIDE = (
    '<include file="../outside/secret.xml"/>',
    '<include file="/etc/passwd"/>',
    '<include file="link.xml"/>',
    '<include file="case.xml"/>',
    '<asset><mesh name="m" file="../outside/secret.stl"/></asset>',
    '<compiler meshdir="../outside"/><asset><mesh name="m" file="secret.stl"/></asset>',
    '<compiler assetdir="../outside"/><asset><mesh file="secret.stl"/></asset>',
    '<asset><hfield name="h" file="../outside/secret.png" size="1 1 1 1"/></asset>',
    '<asset><hfield name="h" nrow="30000" ncol="30000" size="1 1 1 1"/></asset>',
    '<asset><texture name="t" type="2d" file="../outside/secret.png"/></asset>',
    '<asset><texture name="t" type="2d" builtin="flat" width="99999" height="99999"/>'
    "</asset>",
    '<asset><model name="o" file="../outside/secret.xml"/></asset>',
    '<size memory="900G"/>',
    '<size nuserdata="2000000000"/>',
    '<extension><plugin plugin="mujoco.elasticity.cable"/></extension>',
    '<worldbody><replicate count="1000000"><body><geom size="1"/></body></replicate>'
    "</worldbody>",
    '<worldbody><composite type="cable" count="100000 1 1" size="1"/></worldbody>',
    '<worldbody><flexcomp name="f" type="grid" count="2000 2000 10"/></worldbody>',
)


Mutation = Callable[[random.Random, Any], Any]
