"""Estimation: shares of the original columns, from a sanitised table and its protocol alone.

observation            the output of a record, and how it depends on its original value
many_values            thousands of values, one share at a time
identification         which shares the protocol identifies, and bounds for the others
likelihood             the maximum likelihood distribution, with a proved gap
inversion              unbiased estimates and their exact covariance; projection on the simplex
calibration            estimates where margins are known exactly
intervals, profile     confidence intervals, also near 0 and 1
share_estimates        all of these, on arrays
output_reader          from sanitised tables to counts of outputs
decoy_weights, wide_estimates  real or synthetic records, by weights of rows and decoys
results, tabulation    tables of shares; `estimate`
imputation             the posterior of one record, completed tables, Rubin's rules
regression             linear and logistic regression on the original values
expected_precision     the precision that a design will allow, for its owner
"""

from privacyfunnel.estimation.imputation import (
    Imputation,
    Posterior,
    choose_groups,
    impute,
    impute_file,
    posterior,
)
from privacyfunnel.estimation.intervals import Combined, combine
from privacyfunnel.estimation.regression import Regression, regress
from privacyfunnel.estimation.results import Cell, Estimates, ShareTable
from privacyfunnel.estimation.tabulation import estimate
from privacyfunnel.estimation.wide_estimates import weigh

__all__ = [
    "Cell",
    "Combined",
    "Estimates",
    "Imputation",
    "Posterior",
    "Regression",
    "ShareTable",
    "choose_groups",
    "combine",
    "estimate",
    "impute",
    "impute_file",
    "posterior",
    "regress",
    "weigh",
]
