"""Read files: options say what a file holds, its ending and header say the rest, pandas parses."""
