"""Products of small matrices in one thread: threads that wait for each other on busy cores take 100 times as long.

The workers of the suite and the processes that tests start share the cores already. It is read when numpy is loaded, so
this comes first.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
