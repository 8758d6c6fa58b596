"""Draws of a partition and their own quantities: expected losses, similarities, and agreement of the chains."""
