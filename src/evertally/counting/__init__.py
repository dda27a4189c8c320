"""Counting: noise processes for prefix sums, and the linear engine on them. It never knows what is counted."""
