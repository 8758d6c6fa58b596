"""Compiled loops, and nothing else.

Rules of the house: arrays and scalars in, arrays out or changed in place (the docstring names them); no validation, no
random numbers, no options, no functions as arguments (a jitted argument defeats the on-disk cache). Kernels are serial.
A loop over independent outputs takes the range it is to run over first, and `executor.in_blocks` gives blocks of it to
threads, so that a result never depends on their number. Kernels that call each other share a file, because numba's
cache does not notice a change in another one.

Shapes are written with N draws, n items, R = sum of the draws' numbers of clusters, K clusters of an estimate.
"""
