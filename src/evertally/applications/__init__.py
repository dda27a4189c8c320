"""Applications of the linear engine: statistics whose changes are counted (factorization-counting 6)."""
