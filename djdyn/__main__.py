"""`python -m djdyn` is the `djdyn` command, which lives above the library."""

import importlib
import sys


sys.exit(importlib.import_module("experiments.__main__").main())
