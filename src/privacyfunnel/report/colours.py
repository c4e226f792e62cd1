"""The colours of all pictures: readable on light and on dark pages."""

TEAL, BLUE, RED, AMBER, VIOLET, GREY = "#1b8a6b", "#3b82b5", "#d1495b", "#d99000", "#8f6fc9", "#7b868b"
LINES = (TEAL, BLUE, RED, AMBER, VIOLET, GREY)  # of methods, in the order of the table
NEAREST = (TEAL, "#5aa9c9", AMBER, "#9b7bd1", RED, "#8a9499")  # of values that an output stands for, likeliest first
PALE_TEAL = "#9fd3c3"
EVERYTHING = "#999999"  # H(X), the line that nothing exceeds
