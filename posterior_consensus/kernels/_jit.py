"""The one decorator of every kernel."""

from functools import partial

import numba

jit = partial(numba.njit, cache=True, nogil=True, no_cfunc_wrapper=True, error_model="numpy")
