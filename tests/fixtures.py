"""The two fixtures that most oracle values belong to."""

import numpy as np

F6_LOGITS = np.array([[2, 0.5, -1], [0.2, 0.1, 0], [-0.5, 1.5, 3], [1, 2, 0], [0, 3, 0.5], [1.2, -0.3, 0.7]])
F6_LABELS = np.array([0, 1, 2, 0, 1, 2])
F6_RESPONSE = np.array([0.78559703, 0.36716540, 0.79787603, 0.66524096, 0.88349207, 0.54654939])

M10_CONFIDENCE = np.array([0.99, 0.95, 0.95, 0.90, 0.80, 0.80, 0.80, 0.60, 0.55, 0.30])
M10_ERROR = np.array([0, 0, 1, 0, 0, 1, 0, 1, 0, 1])
