"""SR: a plain cross-entropy classifier, ranked by its softmax response. The baseline, and the file to copy."""

from torch.nn.functional import cross_entropy

from benchmark.interface import Batch, Method, Progress, Step, accuracy


class CrossEntropy(Method):
    title = "cross-entropy, ranked by softmax response"
    reference = "Geifman & El-Yaniv, NeurIPS 2017"
    labels = {"SR": {}}

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        logits, _ = self.network(batch.images)
        return Step(cross_entropy(logits, batch.labels), logs={"accuracy": accuracy(logits, batch.labels)})


METHOD = CrossEntropy
