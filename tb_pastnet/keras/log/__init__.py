"""From records to event files: packed, queued, written, counted."""
