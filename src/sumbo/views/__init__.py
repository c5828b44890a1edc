"""What can be said of a study: its trials, and what a model makes of them. Figures and reports show it."""
