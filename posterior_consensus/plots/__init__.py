"""Pictures. Each function draws one on Matplotlib axes and returns them."""
