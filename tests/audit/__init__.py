"""Tests of the auditor; `bugs` are planted for it to find, `probes` are the small audits that find them."""
