"""The one decorator of every kernel."""

from functools import partial

import numba

jit = partial(numba.njit, cache=True, nogil=True)
