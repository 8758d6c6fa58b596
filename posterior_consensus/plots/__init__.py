"""Figures. Each function plots on Matplotlib axes and returns them."""
