"""The experiments of the Add-GP-UCB paper, and what became of its claims."""
