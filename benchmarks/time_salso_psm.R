# usage: Rscript time_salso_psm.R draws.bin n_draws n_items; prints the median seconds of three psm() calls on two cores after one that warms up
a <- commandArgs(TRUE)
suppressPackageStartupMessages(library(salso))
n_draws <- as.integer(a[2]); n_items <- as.integer(a[3])
draws <- matrix(readBin(a[1], "integer", n_draws * n_items, size = 4), n_draws, n_items)
invisible(psm(draws, nCores = 2))
cat(median(replicate(3, system.time(psm(draws, nCores = 2))[["elapsed"]])))
