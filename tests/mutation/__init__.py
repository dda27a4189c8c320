"""Mutation testing of what privacy rests on: small wrong changes of the product, each judged by tests, conformance and
audits. `PYTHONPATH=tests python -m mutation --help`; CONTRIBUTING.md says when to run it."""
