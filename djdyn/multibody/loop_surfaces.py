r"""Surfaces for `PointOnSurface`; any smooth function of a point is one."""

import equinox as eqx
import jax.numpy as jnp

from ..typing import Mat3, Scalar, Vec3, si


class Quadric(eqx.Module):
    r"""A surface of second degree, $f = p^\top A p + b^\top p + c$.

    A sphere of radius $r$ has $A$ of ones on its diagonal and $c = -r^2$; a cylinder
    about z has a zero for z. Singular where $f$ has no slope, as at a cone's tip.
    """

    A: Mat3 = eqx.field(converter=si("1/m^2"))
    b: Vec3 = eqx.field(converter=si("1/m"), default=(0.0, 0.0, 0.0))
    c: Scalar = eqx.field(converter=si("1"), default=-1.0)

    def __check_init__(self):
        for name, shape in (("A", (3, 3)), ("b", (3,)), ("c", ())):
            if (found := jnp.shape(getattr(self, name))) != shape:
                raise ValueError(f"Quadric.{name} has shape {found}, expected {shape}")

    def __call__(self, p: Vec3) -> Scalar:
        return p @ self.A @ p + self.b @ p + self.c
