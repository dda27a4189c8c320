"""Noise laws as they are drawn: what a mechanism asks its source for, against what its theorem needs.

tap            a source that notes every draw of whatever kind, and says what it is told
full_horizon   linear noise at the configured horizon: ticks that tell, reached by `seek`
solved         the same for banks and square roots: a shift of the draws that hides a change, tried in the program
one_shot       one release: scales of counts and selections against the charge
thresholds     labels that one person brought: where they appear, and how likely that is
enumerated     every combination of draws of small programs
steps          which of these rows a mechanism gets
"""
