"""The checksum that HDF5 keeps with a chunk."""

import numpy as np

from posterior_consensus.kernels._jit import jit


@jit
def fletcher32(words):
    """Sum of fewer than 2^24 numbers of 16 bits, and the sum of all partial sums, both modulo 65535."""
    first = second = np.uint64(0)
    for word in words:
        first += np.uint64(word)
        second += first
    return first % np.uint64(65535), second % np.uint64(65535)
