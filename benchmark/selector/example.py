"""The program that is put beside a graph: it needs onnxruntime and numpy alone."""

from benchmark.selector.model import Description

PROGRAM = '''"""Ask the selector for classes and decisions: python example.py [IMAGES.npy]"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime

folder = Path(__file__).resolve().parent
names = json.loads((folder / "selector.json").read_text(encoding="utf-8"))["classes"]
quiet = onnxruntime.SessionOptions()
quiet.log_severity_level = 3  # that the threshold can be replaced is no reason for a warning
session = onnxruntime.InferenceSession(folder / "model.onnx", quiet, providers=["CPUExecutionProvider"])

random = np.random.default_rng(0)
images = np.load(sys.argv[1], allow_pickle=False) if len(sys.argv) > 1 else RANDOM
# For another threshold, give the graph one more input: "threshold": np.array(0.5)
classes, confidence, kept = session.run(["class", "confidence", "kept"], {"images": images})
for number, name in enumerate(classes):
    print(number, names[name], f"{confidence[number]:.6g}", "kept" if kept[number] else "abstains")
'''


def example_program(description: Description) -> str:
    """Return the program, which makes random images where it is given none."""
    size = ", ".join(map(str, (4, *description.shape)))
    floats, pixels = f"random.normal(size=({size})).astype(np.float32)", f"random.integers(0, 256, ({size}), np.uint8)"
    return PROGRAM.replace("RANDOM", floats if description.floats else pixels)
