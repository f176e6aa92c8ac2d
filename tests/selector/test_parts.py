"""Small parts of a selector: heads as lists of layers, agreement, names of classes, graphs that torch cannot write."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from benchmark.base.errors import UserError
from benchmark.config.task import DataConfig
from benchmark.data.cache import Folders
from benchmark.interface import Divide, Doubt, read_outputs
from benchmark.library.selector import class_names
from benchmark.selector.agreement import Answers, Disagreement, Room, compare
from benchmark.selector.files import write_folder
from benchmark.selector.layers import build_layers, describe_layers
from tests.image_sets import write_class_folders


class Owner(nn.Module):
    """Has a network of four outputs, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.outputs = nn.Linear(3, 4)
        self.head = nn.Linear(3, 1)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        return self.outputs(images), images


def test_further_outputs_come_from_where_they_are_declared() -> None:
    owner, images = Owner(), torch.randn(5, 3)
    doubts = {
        "first": Doubt(),
        "second": Doubt(output=1, minus=True),
        "read": Doubt("head"),
        "less": Doubt("head", 0, True),
    }
    with torch.no_grad():
        found = read_outputs(owner, owner, images, 2, doubts)
        outputs, head = owner.outputs(images), owner.head(images)[:, 0]
    assert torch.equal(found.logits, outputs[:, :2])
    assert torch.equal(found.aux["first"], outputs[:, 2])
    assert torch.equal(found.aux["second"], -outputs[:, 3])
    assert torch.equal(found.aux["read"], head)
    assert torch.equal(found.aux["less"], -head)


def test_a_head_is_built_again_from_its_description() -> None:
    layers = [nn.Linear(6, 5, bias=False), nn.BatchNorm1d(5, eps=0.3), nn.GELU("tanh"), nn.LayerNorm(5), Divide(4)]
    head = nn.Sequential(*layers, nn.Dropout(0.2), nn.Linear(5, 1)).eval()
    again = build_layers(describe_layers(head, "head")).eval()
    again.load_state_dict(head.state_dict())
    images = torch.randn(9, 6)
    assert torch.equal(again(images), head(images))


def test_a_layer_that_is_not_known_is_refused() -> None:
    class Linear(nn.Linear):
        """Another one of that name."""

    for layer in (Linear(2, 1), nn.Bilinear(2, 2, 1)):
        with pytest.raises(UserError, match="its part 'head' has a layer"):
            describe_layers(nn.Sequential(nn.ReLU(), layer), "head")
    with pytest.raises(KeyError):
        build_layers([{"layer": "Linear", "in_features": 2}])
    with pytest.raises(KeyError):
        build_layers([{"layer": "Conv9d"}])


LOGITS = np.array([[3.0, 0.0], [0.0, 2.0], [1.0, 1.0 - 1e-7]])


def answers(confidence: list[float], classes: tuple[int, ...] = (0, 1, 0)) -> Answers:
    return Answers("one way", np.array(classes), np.array(confidence), LOGITS)


def test_what_lies_at_the_edge_is_counted() -> None:
    theirs = answers([3.0, 2.0, 0.5])
    ours = answers([3.0, 2.0 - 1e-6, 0.5], (0, 1, 1))
    found = compare(ours, theirs, 2.0, Room.beside(theirs))
    assert (found.decisions, found.classes, found.num_images) == (1, 1, 3)
    assert found.difference == pytest.approx(1e-6 / 3)
    assert str(found) == "3 images agree to 3.3e-07, but for 1 decision and 1 class at the very edge"


@pytest.mark.parametrize(
    "ours",
    [
        answers([3.0, 2.0, 0.5 + 4e-6]),
        answers([3.0, 2.0, float("nan")]),
        answers([3.0, 2.0, 0.5], (1, 1, 0)),
        Answers("one way", np.array([0, 1, 0]), np.array([3.0, 2.0, 0.5]), LOGITS + 4e-6),
    ],
    ids=["confidence", "not a number", "class", "logits"],
)
def test_what_is_further_apart_is_refused(ours: Answers) -> None:
    theirs = answers([3.0, 2.0, 0.5])
    with pytest.raises(Disagreement, match="so nothing is written"):
        compare(ours, theirs, 1.0, Room.beside(theirs))


def test_rounding_makes_room() -> None:
    single, double = answers([3.0, 2.0, 0.5]), answers([3.0, 2.0 + 1e-5, 0.5])
    ours = answers([3.0, 2.0, 0.5 + 7e-5])
    assert compare(ours, single, 1.0, Room.rounded(single, double)).difference > 1e-6
    with pytest.raises(Disagreement):
        compare(answers([3.0, 2.0, 0.5 + 9e-5]), single, 1.0, Room.rounded(single, double))


def test_classes_go_by_their_folders(tmp_path: Path) -> None:
    write_class_folders(tmp_path / "pets", 3, ("cat", "dog", "emu"))
    config = DataConfig("folder", path=str(tmp_path / "pets"), image_size=8, test_share=0.5)
    assert class_names(config, Folders(tmp_path, tmp_path / "cache"), 3) == ("cat", "dog", "emu")
    without = replace(config, leave_out=(1,))
    assert class_names(without, Folders(tmp_path, tmp_path / "cache"), 2) == ("cat", "emu")


def test_a_folder_is_whole_or_not_there(tmp_path: Path) -> None:
    """What was written is read again before it gets its name."""
    with pytest.raises(UserError, match="is no selector"):
        write_folder(tmp_path / "new", {"README.md": b"x"})
    assert not list(tmp_path.iterdir())
