"""Sizes from which labels are held elsewhere, worked on in parts, or sent to workers: rules of sizes alone.

None depends on how busy a machine is, and answers depend on none but the last three. Sizes
that belong to one method or search stand beside it.
"""

# Shares of the memory budget
SHARE_HELD = 1 / 4  # up to this size labels are held in memory, and variables of files are read whole
SHARE_OF_READING = 1 / 16  # a block of a large variable, which a few threads work on and copy
SHARE_OF_FEW_DRAWS = 1 / 8  # draws taken of labels on disk that take no more are read when they are taken
SHARE_OF_PART = 1 / 16  # a part of an array that is worked on in parts
SHARE_OF_MODEL_TABLE = 1 / 32  # table of the perturbation model, one for each block of items

# Labels, draws and items in a block
LABELS_IN_BLOCK = 2**24  # of items, in all draws
LABELS_READ_AT_ONCE = 2**24  # of labels in memory that become canonical: memory that is used again takes less time
DRAWS_IN_CHUNK, ITEMS_IN_CHUNK = 128, 2**13  # of a store, at most; half as many draws at least
LABELS_IN_CLUSTER_BLOCK = 2**26  # on a worker of a cluster, at most
LABELS_IN_SMALL_CLUSTER_BLOCK = 2**22  # and at least
LABELS_TO_COMPARE = 2**20  # items whose labels over all draws are compared with one another
DRAWS_IN_BIT_PLANES = 4096  # bounds their memory, and is a block that could come from disk
PROBABILITIES_AT_ONCE = 4_000_000  # 32 MB
CELLS_AT_ONCE = 2**24  # of the contingency tables that go through the blocks together

# Sizes from which work goes another way
LABELS_WORTH_SENDING = 2**24  # that a call reads, below which a worker costs more than it saves
BYTES_WORTH_SENDING_ONCE = 2**16  # of an argument that is else sent with every call
LABELS_OF_LARGE_MODEL = 2**27  # from which the perturbation model reads them in blocks
LABELS_TO_BOUND = 500_000_000  # of more, the time of a summary matches too few draws for a bound of any use
LABELS_TO_SEARCH_AGAIN = 20_000_000  # of more, further searches of a summary take as long as its other steps together
ITEMS_OF_ALL_PAIRS = 10_000  # beyond this many items, quantities of pairs use a subset of this size
