"""Tables: files and frames in, categorical codes and counts between, files and frames out."""
