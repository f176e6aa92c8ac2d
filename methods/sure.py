"""SURE: correctness ranking in a flat minimum, with RegMixup and a cosine classifier."""

from benchmark.interface import Recipe


class Sure(Recipe):
    """The published constants of CIFAR-100, most of which are the defaults; on CIFAR-10 the paper halves both weights.

    Its second pass draws new partners for the mixed images; here both passes see the same batch.
    """

    title = (
        "CRL with RegMixup, a cosine classifier, SAM (rho 0.05) and SWA (from 60 % of the epochs on, at half the rate)"
    )
    reference = "Li et al., CVPR 2024"
    labels = {"SURE": {}}
    of = "CRL"
    changes = {
        "mixing": {"name": "regmixup", "reduction": "sum"},
        "network": {"classifier": "cosine"},
        "optimizer": {"sharpness": "sam"},
        "averaging": {"name": "swa", "rate": 0.5},
    }


METHOD = Sure
