"""Applications of the linear engine: statistics whose changes from tick to tick are counted (factorization-counting 6)."""
