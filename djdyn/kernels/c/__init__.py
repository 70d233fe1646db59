"""C source of kernels: `source` writes a schedule as portable C99."""
