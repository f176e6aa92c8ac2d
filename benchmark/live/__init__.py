"""What a running command does: its journal, and a page that follows it."""
