"""The experiments of the paper, done again: runs, figures, and what became of each of its claims."""
