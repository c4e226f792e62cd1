"""Several published attributes: product and chain protocols, their budgets, and what side channels see."""
