# usage: Rscript time_salso_psm.R draws.bin n_draws n_items; prints the seconds of one psm() call on two cores
a <- commandArgs(TRUE)
suppressPackageStartupMessages(library(salso))
n_draws <- as.integer(a[2]); n_items <- as.integer(a[3])
draws <- matrix(readBin(a[1], "integer", n_draws * n_items, size = 4), n_draws, n_items)
cat(system.time(psm(draws, nCores = 2))[["elapsed"]])
