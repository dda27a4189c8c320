"""Statistics of sequences of letters (factorization-counting 6.6, 6.7)."""
