"""The report: a summary as one HTML file, without anything from the network."""
