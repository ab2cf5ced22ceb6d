"""Programs in the manner of published ones, recorded as their authors would."""
