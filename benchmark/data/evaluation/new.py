"""Open images of classes that the classifiers of a task cannot know."""

from dataclasses import replace

import numpy as np

from benchmark.base.errors import UserError
from benchmark.config.evaluation import EvaluationConfig
from benchmark.data.dataset import load
from benchmark.data.evaluation.home import Home
from benchmark.data.evaluation.parts import EvaluationSet, Part
from benchmark.data.evaluation.places import names_task, open_files, open_task
from benchmark.data.images import Images

NEW = "new"


def new_set(config: EvaluationConfig, home: Home) -> EvaluationSet:
    if not config.images:
        images, sha256 = left_out_images(home)
    elif names_task(config):
        other = open_task(config, home)
        images, sha256 = other.test, other.sha256
        if sha256 == home.sha256:
            raise UserError(
                f"images: '{config.images}' has the images of the task itself, whose classes are not new; for those of "
                "data.leave_out, write no images"
            )
    else:
        files = open_files(config, home)
        images, sha256 = files.test, files.sha256
    labels = np.full(len(images), home.facts.num_classes)
    return EvaluationSet((Part(NEW, replace(images, labels=labels)),), sha256)


def left_out_images(home: Home) -> tuple[Images, str]:
    """Return the test images of the classes that the task leaves out, and the hash of its data."""
    if not home.data.leave_out:
        raise UserError("a set of kind 'new' needs images; without, the task must leave out classes (data.leave_out)")
    whole = replace(home.data, leave_out=(), train_images=0, test_images=0, val_images=0)
    loaded, sha256 = load(whole, home.folders, home.build)
    left_out = np.flatnonzero(np.isin(loaded.test.labels, home.data.leave_out))
    if not len(left_out):
        raise UserError("the classes of data.leave_out have no test images")
    return loaded.test.take(left_out), sha256
