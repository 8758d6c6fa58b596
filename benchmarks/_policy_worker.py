"""Search for consensus partitions of posteriors whose files and options come as lines of JSON; answer in such lines."""

import json
import sys
import time
import warnings

import numpy as np

import posterior_consensus as pc


def main() -> None:
    """Answer until the input ends."""
    warnings.simplefilter("ignore")
    known = None, None
    for line in sys.stdin:
        file, options = json.loads(line)
        if file != known[0]:
            with np.load(file) as arrays:
                weights = arrays["counts"] if "counts" in arrays else None
                known = file, pc.as_partition_draws(arrays["labels"], weights=weights)
        began, cpu = time.perf_counter(), time.process_time()
        found = pc.consensus_partition(known[1], progressbar=False, **options)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        told = {"loss": float(found.expected_loss), "seconds": seconds, "cpu": cpu, "n_clusters": found.n_clusters}
        told |= {"n_starts": found.info.n_starts, "n_perturbations": found.info.n_perturbations}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
