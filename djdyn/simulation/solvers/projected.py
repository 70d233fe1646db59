"""A solver whose steps end with loops closed."""

from typing import Any

import diffrax as dfx


class Projected(dfx.AbstractWrappedSolver):
    """Another solver's steps, each projected onto the closed loops at its end."""

    solver: dfx.AbstractSolver

    @property
    def term_structure(self) -> Any:  # pyright: ignore
        """Structure of the terms that the solver takes."""
        return self.solver.term_structure

    @property
    def interpolation_cls(self) -> Any:  # pyright: ignore
        """How the solver interpolates within a step."""
        return self.solver.interpolation_cls

    @property
    def term_compatible_contr_kwargs(self) -> Any:  # pyright: ignore
        """What the solver hands to its terms' controls."""
        return self.solver.term_compatible_contr_kwargs

    @property
    def root_finder(self) -> Any:
        """The root finder of an implicit solver."""
        return self.solver.root_finder  # pyright: ignore

    @property
    def scan_kind(self) -> Any:
        """How a Runge-Kutta solver loops over its stages."""
        return self.solver.scan_kind  # pyright: ignore

    def order(self, terms):
        return self.solver.order(terms)

    def strong_order(self, terms):
        return self.solver.strong_order(terms)

    def error_order(self, terms):
        return self.solver.error_order(terms)

    def init(self, terms, t0, t1, y0, args):
        return self.solver.init(terms, t0, t1, y0, args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        # The last stage of a step was not at the state that the next one begins with.
        del made_jump
        y1, error, dense, state, result = self.solver.step(
            terms, t0, t1, y0, args, solver_state, made_jump=True
        )
        return args.project(t1, y1), error, dense, state, result

    def func(self, terms, t0, y0, args):
        return self.solver.func(terms, t0, y0, args)
