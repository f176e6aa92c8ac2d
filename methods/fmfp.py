"""FMFP: plain cross-entropy in a flat minimum, by sharpness-aware steps and averaged weights."""

from benchmark.interface import Recipe


class FlatMinima(Recipe):
    """SAM and SWA with the published constants, most of which are the defaults; epochs and schedule are the task's.

    The paper trains 200 epochs at 0.1 along a cosine, and from epoch 121 on at 0.05 with an average after each.
    """

    title = "cross-entropy with SAM (rho 0.05) and SWA (from 60 % of the epochs on, at half the learning rate)"
    reference = "Zhu et al., ECCV 2022"
    labels = {"FMFP": {}}
    of = "SR"
    changes = {"optimizer": {"sharpness": "sam"}, "averaging": {"name": "swa", "rate": 0.5}}


METHOD = FlatMinima
