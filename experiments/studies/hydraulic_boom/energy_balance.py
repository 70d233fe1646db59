"""Energy and oil balance of a lifted boom."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy.integrate

import djdyn
from djdyn.hydraulics import Circuit, SealStribeck
from djdyn.system.instant import Instant

from ...harness.study import Study
from .lift import adaptive
from .model import boom


def rates(now: Instant) -> dict[str, Any]:
    """Return powers and oil flow, and the stored energy and oil."""
    circuit, state = now.system.parts["oil"], now.y.parts["oil"]
    assert isinstance(circuit, Circuit)
    given = state, now.world, now.signals
    return {
        "supply, less tank": circuit.power_in(jnp.zeros(()), *given),
        "work on the boom": now.signals["oil.lift.force"] * now.signals["oil.lift.v"],
        "net inflow": circuit.oil_in(*given),
        "compression": circuit.energy(state, now.world),
        "oil": circuit.oil_mass(state, now.world),
        **{f"heat, {k}": x for k, x in circuit.losses(*given).items()},
    }


def machine() -> djdyn.System:
    """Return the lifted boom with mass-conserving oil, air, a leak and friction."""
    friction = SealStribeck(viscous=2e3, coulomb=300.0)
    return boom("mass", 1.4e9, 0.002, 2e-12, friction=friction)


def run_energy_balance(study: Study) -> None:
    """Report the residuals of energy and oil of the lifted boom."""
    run = adaptive(study.customise(machine()), saveat=5001, ledger=True)
    t, found = np.asarray(run.t), run.map(rates)
    found = {k: np.asarray(x) for k, x in found.items()}
    stock = {k: (x := found.pop(k)) - x[0] for k in ("compression", "oil")}
    total = {
        k: scipy.integrate.cumulative_simpson(x, x=t, initial=0.0)
        for k, x in found.items()
    }
    poured, supplied = total.pop("net inflow"), total.pop("supply, less tank")
    spent = stock["compression"] + sum(total.values())
    drawn = np.abs(supplied).max()
    residual = np.abs(djdyn.energy_balance(run.system, run)).max()
    least = min(np.min(x) for k, x in found.items() if k.startswith("heat"))
    for name, value, most, note in (
        ("ledger", residual / drawn, 1e-5, "energy residual of the whole machine, over "
         f"the {drawn / 1e3:.1f} kJ that the supply delivers"),
        ("oil_energy", np.abs(supplied - spent).max() / drawn, 1e-5, "energy residual "
         "of the oil: supply less work, heat and compression"),
        ("oil_mass", np.abs(poured - stock["oil"]).max() / np.abs(poured).max(), 1e-6,
         "mass residual of the oil: net inflow less stored mass, over "
         f"{np.abs(poured).max():.3f} kg"),
    ):  # fmt: skip
        study.metric(
            f"hydraulic_boom.energy_balance.{name}", value, at_most=most, note=note
        )
    study.metric(
        "hydraulic_boom.energy_balance.least_loss",
        min(least, 0.0),
        at_least=-1e-6,
        unit="W",
        note="least power lost by any component, or zero where all are positive",
    )
    rows = [("supply, less tank", supplied[-1])]
    rows += [(k, x[-1]) for k, x in total.items()]
    rows += [("compression", stock["compression"][-1])]
    study.report.table(
        "Energy balance of the lifted boom over 5 s", ("term", "J"), rows
    )
    study.report.plot(
        "Energy balance of the lifted boom",
        ("time", "s", t),
        ("energy", "kJ"),
        {k: x / 1e3 for k, x in {**total, "compression": stock["compression"]}.items()},
        {"supply, less tank": supplied / 1e3},
    )
    study.report.plot(
        "Oil in the lifted boom's circuit",
        ("time", "s", t),
        ("oil", "g"),
        {"stored": 1e3 * stock["oil"]},
        {"net inflow": 1e3 * poured},
    )
