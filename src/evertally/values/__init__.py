"""Values of events: sums, variances and quantiles, within declared bounds."""
