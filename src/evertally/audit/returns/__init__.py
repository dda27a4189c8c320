"""Memories that must not end: whoever was paid for once is silent for long, comes back, and counts no further.

histories   who comes at which ticks: silent for a little less and more than every declared length, and to the end
books       who counts, by dictionaries that forget nobody: rules of users written once more, from their words
lives       the same of items: those that come and go, and those whose time is over
muted       a mechanism at its full horizon whose engine only takes down what it is handed
comes_back  the row: what reaches the engine is what the books say, at every tick
"""
