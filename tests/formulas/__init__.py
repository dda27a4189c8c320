"""Formulas of the specifications that no mechanism uses: what bounds and mechanisms are compared with."""
