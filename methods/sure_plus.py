"""SURE+: plain cross-entropy with RegMixup, friendly sharpness-aware steps and a moving average of the weights."""

from benchmark.interface import Recipe


class SurePlus(Recipe):
    """Without PixMix, the part that mixes in fractal pictures: it needs pictures that no task here has."""

    title = "cross-entropy with RegMixup, F-SAM (rho 0.2) and EMA (0.9998); without the extra pictures of PixMix"
    reference = "SURE+, 2026"
    labels = {"SURE+": {}}
    of = "SR"
    changes = {
        "mixing": {"name": "regmixup", "reduction": "sum"},
        "optimizer": {"sharpness": "f-sam"},
        "averaging": {"name": "ema"},
    }


METHOD = SurePlus
