"""Compiled loops, and the few lines around some that give tables more columns or take the next block.

Rules of the house: arrays and scalars in, arrays out or changed in place (the docstring names them); no validation, no
random numbers, no options, no functions as arguments (a jitted argument defeats the on-disk cache). Kernels are serial.
A loop over independent outputs takes the range it is to run over first, and `executor.in_blocks` gives blocks of it to
threads, so that a result never depends on their number.

Nothing here checks shapes or indices: numba reads and writes beyond the end of an array, which can end the process. So
no kernel is public. Its arguments are arrays that the Python function beside it makes, or records that a function such
as `tables_of` makes.

Compilation is a cost that users pay. What only kernels call is `inner`, which makes it cheaper; from Python it runs as
it is written. What depends on the kind of tables or of loss is chosen with `either`, so that a call compiles its own
kind only. Arguments of one kernel have the same types in all calls, as each set of types is compiled for itself.

Shapes are written with N draws, n items, R = sum of the draws' numbers of clusters, K clusters of an estimate.
"""
