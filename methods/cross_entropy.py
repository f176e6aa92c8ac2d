"""SR: a plain cross-entropy classifier, ranked by its softmax response. The baseline, and the file to copy.

And label smoothing, a control: it often raises accuracy, and makes the ranking worse.
"""

from dataclasses import dataclass
from typing import Annotated

from torch.nn.functional import cross_entropy

from benchmark.interface import Batch, Method, Progress, Step, Within, accuracy, later


class CrossEntropy(Method):
    title = "cross-entropy, ranked by softmax response; with smoothed labels as a control"
    reference = "Geifman & El-Yaniv, NeurIPS 2017; smoothing: Szegedy et al., CVPR 2016, Zhu et al., ECCV 2022"
    labels = {"SR": {}, "Label smoothing": {"smoothing": 0.05}}
    takes_mixed = True

    @dataclass(frozen=True)
    class Config:
        smoothing: Annotated[float, Within(0, 1, "the label would count for less than nothing")] = later(0.0)
        """a, in −(1−a) ln p_y − a·mean_j ln p_j; 0 is SR."""

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        logits, _ = self.network(batch.images)
        smoothing = self.config.smoothing
        loss = batch.mean_loss(lambda labels: cross_entropy(logits, labels, label_smoothing=smoothing))
        return Step(loss, logs={"accuracy": accuracy(logits, batch.labels)})


METHOD = CrossEntropy
