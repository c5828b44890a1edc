"""What can be said of a study, and how sure that is."""
