"""`python -m djdyn` is the `djdyn` command, which lives above the library."""

import importlib
import os
import sys


QUIET = "TF_CPP_MIN_LOG_LEVEL"  # XLA reads it when JAX is imported, which it is by now

if os.environ.get(QUIET) in (None, "1"):  # JAX sets it to 1 where nobody did
    os.environ[QUIET] = "3"
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
sys.exit(importlib.import_module("experiments.__main__").main())
