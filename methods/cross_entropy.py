"""SR: a plain cross-entropy classifier, ranked by its softmax response. The baseline, and the file to copy."""

from torch.nn.functional import cross_entropy

from benchmark.interface import Batch, Method, Progress, Step, accuracy


class CrossEntropy(Method):
    title = "cross-entropy, ranked by softmax response"
    reference = "Geifman & El-Yaniv, NeurIPS 2017"
    labels = {"SR": {}}
    takes_mixed = True

    def training_step(self, batch: Batch, progress: Progress) -> Step:
        logits, _ = self.network(batch.images)
        loss = batch.mean_loss(lambda labels: cross_entropy(logits, labels))
        return Step(loss, logs={"accuracy": accuracy(logits, batch.labels)})


METHOD = CrossEntropy
