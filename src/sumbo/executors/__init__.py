"""Where evaluations run: processes of our own, or any executor of the user's."""
