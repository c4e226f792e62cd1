"""Estimation: what an analyst can say about the original columns, from a sanitised table and its protocol alone.

observation       what a sanitised record shows, and how that depends on its original value
models            its two shapes: one of a list, or a set of values
forced            forced responses, by formula for any number of values
many_values       thousands of values, each by itself
precision         how near the best unbiased estimates come
bayes             the posterior of records
identification    what can be learned at all, and bounds for the rest
likelihood        the most likely distribution, with a proved gap
inversion         unbiased estimates and their exact covariance; projection onto distributions
calibration       estimates where margins are known exactly
intervals         intervals that cover, also near 0 and 1
shares            these together, on arrays
reading           sanitised tables to counts
results           tables of shares
front             `estimate`
imputation        the posterior of one record, completed tables, Rubin's rules
"""

from privacyfunnel.estimation.imputation import Combined, Imputation, Posterior, combine, impute, impute_file, posterior
from privacyfunnel.estimation.results import Cell, Estimates, ShareTable
from privacyfunnel.estimation.tabulation import estimate

__all__ = [
    "Cell",
    "Combined",
    "Estimates",
    "Imputation",
    "Posterior",
    "ShareTable",
    "combine",
    "estimate",
    "impute",
    "impute_file",
    "posterior",
]
