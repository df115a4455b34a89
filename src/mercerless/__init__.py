"""mercerless: learn with the similarity you have."""
