"""A system as text and as HTML: its mechanism, parts, signals and states."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..multibody.describe import body_rows, html_table, summary, text_table
from .instant import AbstractSystem


def part_rows(
    system: AbstractSystem, signals: Any
) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: a part, its kind, its states and what it sends."""
    rows = []
    for name, part in system.parts.items():
        state = eqx.filter_eval_shape(part.initial_state)
        fields = state if isinstance(state, dict) else vars(state)
        states = [f"{k}{_shape(x)}" for k, x in fields.items()]
        sent = [k.removeprefix(f"{name}.") for k in signals if k.startswith(f"{name}.")]
        outputs = [k for k in sent if k not in fields]
        kind = type(part).__name__
        rows.append([name, kind, ", ".join(states), ", ".join(outputs)])
    return ["part", "kind", "states", "outputs"], rows


def _shape(x: Any) -> str:
    sizes = {jnp.shape(leaf) for leaf in jax.tree.leaves(x)}
    return "" if sizes <= {()} else " " + " ".join(map(str, sorted(sizes)))


def as_text(system: AbstractSystem, inputs: Any, signals: Any) -> str:
    """Return the tree of bodies, and a table of parts below it."""
    lines = [summary(system.mechanism), text_table(*body_rows(system.mechanism))]
    if system.parts:
        lines += ["", text_table(*part_rows(system, signals))]
    if inputs:
        lines += ["", "inputs: " + ", ".join(inputs)]
    return "\n".join(lines)


def as_html(system: AbstractSystem, inputs: Any, signals: Any) -> str:
    """Return the same as HTML tables, for notebooks."""
    page = html_table(summary(system.mechanism), *body_rows(system.mechanism))
    if system.parts:
        page += html_table("Parts", *part_rows(system, signals))
    if inputs:
        page += html_table("Inputs", ["name"], [[name] for name in inputs])
    return page
