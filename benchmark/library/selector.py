"""Export a finished run as a selector: its network, its score and a threshold with a guarantee, in one folder."""

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmark.base.children import safe_path
from benchmark.base.errors import UserError
from benchmark.base.files import say
from benchmark.base.names import canonical, match_name, unknown_name
from benchmark.base.program import program
from benchmark.base.schema import build
from benchmark.base.units import text_from_bytes
from benchmark.data.devices import device_kind, device_name, has_doubles
from benchmark.data.evaluation.home import Home, class_folders
from benchmark.interface import Derived
from benchmark.jobs.evaluations import OF_EPOCHS, combines_epochs
from benchmark.jobs.job import Job, Methods
from benchmark.launch.evaluations import finished_part
from benchmark.library.evaluate import finished_suites
from benchmark.library.options import ExportOptions, RunOptions
from benchmark.library.registry import load_methods
from benchmark.library.settings import folders_of, no_results
from benchmark.library.training import suite_maker
from benchmark.measure.catalogue import FinishedRun, Unavailable, any_run_scores, own_confidence
from benchmark.measure.labels import name_at
from benchmark.measure.prediction import Classifier, Evidence
from benchmark.selector import answers
from benchmark.selector.agreement import Agreement, compare
from benchmark.selector.assemble import Trained, assembled, why_not_exported
from benchmark.selector.card import Tested, card
from benchmark.selector.example import example_program
from benchmark.selector.extra import PACKAGES, check_packages
from benchmark.selector.files import (
    CARD,
    EXAMPLE,
    GRAPH,
    SELECTOR,
    VERSION,
    WEIGHTS,
    Content,
    Guarantee,
    Realised,
    refuse_existing,
    selector_bytes,
    sha256_of,
    weights_bytes,
    write_folder,
)
from benchmark.selector.graph import Graph, graph_bytes
from benchmark.selector.model import SelectiveModel
from benchmark.selector.scores import check_exportable
from benchmark.store.finished import Finished
from benchmark.store.manifest import ManifestEntry
from benchmark.store.mirror import pulled
from benchmark.store.record import Record
from benchmark.store.store import Store
from benchmark.train.context import Context
from benchmark.train.evaluation.predictors import finished_network
from benchmark.train.provenance import commit
from benchmark.train.pulse import Pulse
from benchmark.train.run_job import prepare_device
