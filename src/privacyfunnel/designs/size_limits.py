"""The sizes at which designs change their way, where several of them must agree."""

LARGEST_PROBLEM = 5000  # inputs of an optimum; beyond that the atoms alone fill the memory …
LARGEST_DIVIDED = 20_000  # … but for information by values alone, solved by blocks: the most that was ever measured
PUBLISHED_WELL = 316  # values that a linear programme publishes directly, half a minute's work; it has their square
MOST_PAIRS = 64  # of secret and value, for statistics by protocols that see both: beyond, nothing is proved in time
BLURRED = 1e-6  # ε below which shares that depend on the secret cannot be estimated from any table there is
CONDITIONED_WELL = 300  # combinations of a domain file up to which they are listed, not real or synthetic
CONDITIONED_AT_ALL = 1200  # inputs up to which the best for statistics is sought; beyond, a step outlasts short limits
