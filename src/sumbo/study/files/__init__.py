"""What people write and read: study files, programs, tables."""
