# usage: Rscript salso_answers.R; reads lines "draws.bin n_draws n_items loss seed", separated by tabs, and answers each with a line: the seconds of a
# default call of salso(), the labels it ends at
suppressPackageStartupMessages(library(salso))
input <- file("stdin", "r")
while (length(line <- readLines(input, 1)) > 0) {
  a <- strsplit(line, "\t")[[1]]
  n_draws <- as.integer(a[2]); n_items <- as.integer(a[3])
  draws <- matrix(readBin(a[1], "integer", n_draws * n_items, size = 4), n_draws, n_items)
  loss <- switch(a[4], vi = VI(), binder = binder(), omari = omARI(), nvi = NVI(), id = ID(), nid = NID())
  set.seed(as.integer(a[5]))
  seconds <- system.time(estimate <- suppressWarnings(salso(draws, loss = loss)))[["elapsed"]]
  cat(seconds, as.integer(estimate), fill = FALSE); cat("\n"); flush(stdout())
}
