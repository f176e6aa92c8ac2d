"""Parts that all other packages use: errors, names, checked settings, files, units, signals. No machine learning."""
