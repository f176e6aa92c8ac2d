"""Tables about the parts of an evaluation set: severities, carried thresholds, new classes, groups."""
