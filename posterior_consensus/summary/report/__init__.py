"""The report: a summary as one HTML file that needs no network."""
