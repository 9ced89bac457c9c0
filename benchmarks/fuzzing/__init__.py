"""Wrong input: how it is made, what reads it, and where it is carried out; see `fuzz.py`.

A process that has threads must not be forked, so numerical libraries get one each: this is imported before them.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
