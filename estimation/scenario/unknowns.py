"""Unknowns of an identification: parameters with domains and priors, and starts."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from djdyn.io.scenario import Scenario
from djdyn.io.scenario_limits import shown
from djdyn.io.scenario_table import TablePlace
from djdyn.multibody.mechanism import Body
from djdyn.system.parameters import FreeParameter, get_parameters, parameter_field
from djdyn.system.transforms import (
    AbstractTransform,
    PhysicalInertia,
    Positive,
    Sigmoid,
    Unbounded,
)

from ..identification.priors import AbstractPrior, LogNormal, Normal


def read_free(
    place: TablePlace, table: Any, scenario: Scenario
) -> tuple[tuple[FreeParameter, ...], dict[str, AbstractPrior]]:
    """Return the unknown parameters with their domains, and their priors."""
    if isinstance(table, list):
        table = {str(path): {} for path in table}
    place.keys_of(table, table if isinstance(table, Mapping) else ())
    if not table:
        raise place.error("no parameter is named")
    free, priors = [], {}
    for path, about in table.items():
        spot = place / path
        about = {"domain": about} if isinstance(about, str) else about
        spot.keys_of(about, ("domain", "bounds", "prior"))
        with spot.guard():
            transform = _transform(spot, path, about, scenario)
        free.append(FreeParameter(f"system.{path}", transform))
        if "prior" in about:
            priors[f"system.{path}"] = _prior(spot / "prior", about["prior"])
    return tuple(free), priors


def _transform(
    place: TablePlace, path: str, about: Mapping[str, Any], scenario: Scenario
) -> AbstractTransform:
    """Return the domain that is asked for, or else that of the parameter's field."""
    kinds = {"any": Unbounded(), "positive": Positive(), "inertia": PhysicalInertia()}
    if about.get("domain") == "inertia":
        get_parameters(scenario.system, f"{path}.mass")
        return kinds["inertia"]
    value = np.asarray(get_parameters(scenario.system, path))
    body, _, entry = path.partition(".I_BC[")
    if entry and not _body(scenario, body).any_inertia:
        raise ValueError(
            f"an entry of an inertia alone may leave all bodies that exist: give body "
            f"{body!r} any_inertia = true, or free the whole body, "
            f'"{body}" = "inertia"'
        )
    if "bounds" in about:
        low, high = (place / "bounds").numbers(about["bounds"], (2,))
        if "domain" in about or not np.all((low < value) & (value < high)):
            raise place.error(
                f"bounds go without a domain and about the first value, {value}"
            )
        return Sigmoid(low, high)
    domain = about.get("domain")
    if domain is None:
        field = parameter_field(scenario.system, path)
        bounded = field.above == 0 or field.at_least == 0
        domain = "positive" if bounded and np.all(value > 0) else "any"
    if domain not in tuple(kinds):
        raise (place / "domain").error(f"is {', '.join(kinds)}, not {shown(domain)}")
    if domain == "positive" and not np.all(value > 0):
        raise place.error(f"its first value must be positive, got {value}")
    return kinds[domain]


def _body(scenario: Scenario, name: str) -> Body:
    m = scenario.system.mechanism
    body = m.bodies[m.index(name) - 1]
    if not isinstance(body, Body):
        raise ValueError(f"body {name!r} bends: it has no one inertia to identify")
    return body


def _prior(place: TablePlace, table: Any) -> AbstractPrior:
    """Return a normal or log-normal distribution."""
    kinds = {("deviation", "mean"): Normal, ("median", "spread"): LogNormal}
    place.keys_of(table, ("mean", "deviation", "median", "spread"))
    keys = tuple(sorted(table))
    if keys not in kinds:
        raise place.error("has mean and deviation, or median and spread")
    values = [
        place.numbers(table[k])
        for k in ("mean", "deviation", "median", "spread")
        if k in table
    ]
    if not np.all(values[1] > 0) or (keys[0] == "median" and not np.all(values[0] > 0)):
        raise place.error("its deviation, spread and median must be positive")
    return kinds[keys](*values)


def read_start(place: TablePlace, value: Any, scenario: Scenario) -> tuple[str, ...]:
    """Return the joints whose initial place and speed are unknown."""
    m = scenario.system.mechanism
    moving = [k for k in m.joint_names if m.q0()[m.v_slice(k)].size]
    joints = moving if value is None else value
    if not isinstance(joints, list) or any(k not in moving for k in joints):
        there = ", ".join(moving)
        raise place.error(f"is a list of joints of {there}, not {shown(value)}")
    return tuple(joints)
