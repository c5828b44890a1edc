"""A study: its ledger, who asks and tells, and where it is kept."""
