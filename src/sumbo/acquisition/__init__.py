"""What a point is worth, and where that is largest."""
