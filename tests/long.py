"""Whether tests run at length, as `make audit` lets them: more trials and larger sizes of what each of them checks."""

import os

LONG = bool(os.environ.get("EVERTALLY_LONG"))
