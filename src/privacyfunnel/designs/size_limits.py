"""The sizes at which designs change their way, where several of them must agree."""

LARGEST_PROBLEM = 5000  # inputs of an optimum; beyond that the atoms alone fill the memory …
LARGEST_DIVIDED = 20_000  # … but for information by values alone, solved by blocks: the most that was ever measured
PUBLISHED_WELL = 316  # values that a linear programme publishes directly, half a minute's work; it has their square
SOLVED_WELL = 650  # combinations up to which the joint optimum keeps more than a chain, a few percent from its bound
SOLVED_WELL_IN_TWO = 2000  # the same where the secret has two values: atoms are then single values or pairs
MOST_PAIRS = 64  # of secret and value, for statistics by protocols that see both: beyond, nothing is proved in time
BLURRED = 1e-6  # ε below which shares that depend on the secret cannot be estimated from any table there is
CONDITIONED_WELL = 300  # inputs up to which the best protocol for statistics is sought where nobody asked for it
CONDITIONED_AT_ALL = 1200  # the same where somebody did; beyond, a step of its master outlasts short limits
