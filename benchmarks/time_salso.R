# usage: Rscript time_salso.R draws.bin n_draws n_items loss; prints the seconds of a default call of salso() on two cores, after one that warms up if
# it is short, and the expected loss it ends at
a <- commandArgs(TRUE)
suppressPackageStartupMessages(library(salso))
n_draws <- as.integer(a[2]); n_items <- as.integer(a[3])
draws <- matrix(readBin(a[1], "integer", n_draws * n_items, size = 4), n_draws, n_items)
loss <- switch(a[4], vi = VI(), binder = binder(), one_minus_ari = omARI(), nvi = NVI(), information_distance = ID(), nid = NID())
call <- function() suppressWarnings(salso(draws, loss = loss, nCores = 2))
seconds <- system.time(estimate <- call())[["elapsed"]]
if (seconds < 5) seconds <- system.time(estimate <- call())[["elapsed"]]
cat(seconds, format(attr(estimate, "info")$expectedLoss, digits = 15))
