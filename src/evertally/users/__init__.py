"""Users: how many there are, how many are active, who comes back; things that are there or not. Of each user any
number of events, bounded by what is counted."""
