"""From measures to event files: when a record is due, what it holds, and how it is written."""
