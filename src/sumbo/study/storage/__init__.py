"""Where a ledger is kept so that it outlives a process: SQLite or PostgreSQL."""
