# usage: Rscript time_chips.R draws.bin n_draws n_items threshold complete; prints the seconds of chips() with 64 runs on two cores, after a call that warms
# up if it is short, and the items and the probability it ends at; with a threshold of 0 the area under the curve in their place
a <- commandArgs(TRUE)
suppressPackageStartupMessages(library(salso))
n_draws <- as.integer(a[2]); n_items <- as.integer(a[3]); threshold <- as.numeric(a[4])
draws <- matrix(readBin(a[1], "integer", n_draws * n_items, size = 4), n_draws, n_items)
call <- function() {
  if (threshold == 0) chips(draws, nRuns = 64, nCores = 2)
  else chips(draws, threshold = threshold, nRuns = 64, andSALSO = a[5] == "TRUE", nCores = 2)
}
seconds <- system.time(found <- call())[["elapsed"]]
if (seconds < 5) seconds <- system.time(found <- call())[["elapsed"]]
if (threshold == 0) cat(seconds, found$auc, 0) else cat(seconds, found$n_items, found$probability)
