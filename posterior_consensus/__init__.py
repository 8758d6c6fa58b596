"""From MCMC draws of a Bayesian clustering to a partition one can report.

The functions of an analysis, in their order. Each takes the posterior as it is: a file, InferenceData, an array.

summarize             all steps below in one object, with text, figure and report
as_partition_draws    the posterior draws, checked and with names
diagnose              whether the chains agree
consensus_partition   the partition of minimum expected loss
certify               how far from the minimum it can be
credible_ball         the partitions around it that hold 95% of the posterior
item_uncertainty      which items are sure of their cluster
particles             several partitions, if the posterior has several modes
attach                results into the InferenceData or AnnData, to be saved with it
load_example          a posterior that comes with the package

Results plot themselves with `plot()`; figures of draws, partitions and data are `plot_psm` and others whose names begin
with `plot_`. Modules have what only some analyses need: `losses`, `diagnostics`, `consensus`, `agreement`, `experts`,
`priors`, `simulate`. The classes of all results are in `results`.
"""

from posterior_consensus.runtime.names import public_names

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
