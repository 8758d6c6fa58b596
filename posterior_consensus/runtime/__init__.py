"""Threads, workers, memory, progress, files, names, and checks of plain arguments."""
