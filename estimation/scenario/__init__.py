"""Identification described in a scenario file: from measurements to a verdict.

Read `specification` (the table `identify`, with `values`, `columns`, `unknowns` and
`files`), `records` (files that were read), `measured` (the machine as its sensors see
it), `trials` and `alignment` (delays before the fit), then `identify`. `plausibility`
finds columns that are not what they are said to be; `verdict` and `diagnosis` judge the
fit.
"""

from .identify import (
    Identification as Identification,
    Task as Task,
    prepare as prepare,
)
from .specification import (
    Specification as Specification,
    read_specification as read_specification,
)
from .verdict import Verdict as Verdict
