"""The engine: the cheapest split of a prior into allowed posteriors, with its proof."""
