"""Sets of markers on a mechanism, and their simulated positions."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from djdyn.multibody.kinematics import World
from djdyn.simulation.trajectory import Trajectory
from djdyn.system.instant import Instant
from djdyn.typing import si


class MarkerSet(eqx.Module):
    """Labelled markers, each at an offset in a frame of a mechanism.

    Build one by `MarkerSet.of({"tip": ("boom", (1.0, 0.0, 0.0))})`. It is a function of
    an `Instant`, for `Trajectory.map` or as the `observe` of a `StateModel`.
    """

    labels: tuple[str, ...] = eqx.field(static=True)
    frames: tuple[str, ...] = eqx.field(static=True)
    offsets: Float[Array, "m 3"] = eqx.field(converter=si("m"))

    def __check_init__(self):
        if len(set(self.labels)) != len(self.labels):
            raise ValueError(f"markers need different labels, got {self.labels}")
        if self.offsets.shape != (len(self.labels), 3):
            raise ValueError(
                f"{len(self.labels)} markers, but offsets of shape {self.offsets.shape}"
            )

    @staticmethod
    def of(places: Mapping[str, tuple[str, Any]]) -> "MarkerSet":
        """Return a marker set from frames and offsets, m, by label."""
        frames, offsets = zip(*places.values(), strict=True)
        stacked = jnp.stack([jnp.asarray(offset, dtype=float) for offset in offsets])
        return MarkerSet(tuple(places), tuple(frames), stacked)

    def at(self, world: World) -> Float[Array, "m 3"]:
        """Return `p_W` of all markers at an instant."""
        places = zip(self.frames, self.offsets, strict=True)
        return jnp.stack([world.pose(frame).act(offset) for frame, offset in places])

    def __call__(self, now: Instant) -> Float[Array, "m 3"]:
        return self.at(now.world)

    def predict(self, trajectory: Trajectory) -> Float[Array, "*batch n m 3"]:
        """Return `p_W` of all markers at all saved times, in all lanes of a batch."""
        return trajectory.map(self)

    @property
    def rigid(self) -> tuple[dict[str, Any], ...]:
        """Offsets by label, for every frame with three markers or more."""
        groups = {frame: {} for frame in self.frames}
        for label, frame, offset in zip(
            self.labels, self.frames, self.offsets, strict=True
        ):
            groups[frame][label] = offset
        return tuple(group for group in groups.values() if len(group) >= 3)
