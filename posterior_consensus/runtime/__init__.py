"""Threads, workers, memory, progress, and checks of plain arguments."""
