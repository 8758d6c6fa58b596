"""Colours of clusters in figures, and in the plots of programs that results are handed to."""

# Far apart in CAM02-UCS for normal vision and for each colour blindness, the first eight most; visible on white and
# black. tests/plots/test_palettes.py has the distances.
COLOURS = (
    "#6655BB", "#88CCEE", "#44AA99", "#DDCC77", "#993366", "#228844", "#BB66BB", "#999933", "#AF9FFF", "#70CF30",
    "#EF9F80", "#4080FF", "#406070", "#FF70BF", "#80408F", "#8F9FBF", "#9FCF9F", "#AF8F70", "#DFAFCF", "#CF808F",
)  # fmt: skip
