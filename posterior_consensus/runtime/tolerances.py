"""How far apart numbers may be that differ by rounding only, relative to their size unless said otherwise.

A tolerance that has a reason of its own stands where it is used, with that reason. All rooms read this file, so it
imports nothing.
"""

ROUNDING = 1e-12  # sums of the same numbers in another order; absolute for similarities, votes and shares
SAME = 1e-9  # results of long computations, such as two losses, and whether a gap is closed
SINGLE = 1e-6  # what single precision leaves
