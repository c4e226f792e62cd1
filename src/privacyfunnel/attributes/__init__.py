"""Several published attributes: product and chain protocols, their budgets, and what side channels see.

contraction.py      P(y | E) of a product, one attribute at a time
product.py          product protocols, and where they leak most
product_law.py      their integers, checked exactly
factors.py          the best protocol of one attribute, alone, after or next to the others
budgets.py          how much of ε each attribute gets
many_programmes.py  thousands of small linear programmes at once
band.py             how far the secret's posterior may go from its prior
contexts.py         the best split in each context of a chain
crew.py             contexts on all cores
growth.py           a chain grown along a table's rows
chain_law.py        its integers, checked outward
chain_step.py       those of one step
chain.py            what a chain is
order.py            which attributes come first
side_channels.py    the worst side channel of any law, in words
choice.py           joint or chain, and why
sparseness.py       what combinations give away, and what fewer columns or coarser bins would change
"""
