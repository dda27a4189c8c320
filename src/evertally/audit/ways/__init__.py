"""Equal ways: what the product does in more than one way, where releases have to be the same bytes.

names     tables of users and the loops under them, against dictionaries (once for all queries of a process)
hashes    the keyed hashes of orders, buckets and cuts, against their definition (the same)
ways_in   the events of a query through every form of column and every door that it has
in_parts  slices of columns and shards of labels against the mechanism as a whole
"""

METHOD = "equal ways"  # of rows whose ways are equal or not: nothing is played against chance
