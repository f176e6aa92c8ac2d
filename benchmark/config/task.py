"""A task: a data set with its network, recipe and per-method settings, as a frozen `TaskConfig`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from benchmark.base.limits import SEEDS, Positive, Within, shown
from benchmark.base.names import is_plain
from benchmark.base.schema import check, later, unidentified
from benchmark.base.units import counted
from benchmark.config.evaluation import EvaluationConfig, check_names
from benchmark.config.ingredient_names import ALL, Ingredient, label_suffix
from benchmark.config.ingredients import AveragingConfig, MixingConfig
from benchmark.config.training import EPOCHS, AugmentConfig, NetworkConfig, OptimizerConfig, ScheduleConfig

RESERVED = ("figures", "manifests", "paper", "reference", "tables", "tune")
"""Folders of the results that are not tasks."""
OWN_SOURCES = ("folder", "arrays", "vectors")
"""Sources of a user's own data; mean, std and augmentation of another data set do not fit them."""
EMBEDDED = ("breast-cancer", "wine", "digits-vectors")
"""Tables that come with scikit-learn."""
FEATURES = "features"
"""Vectors that a network made of images, for a task that the command `features` wrote."""
MEASURED = (*OWN_SOURCES, *EMBEDDED, FEATURES)
"""Sources whose mean and std are measured where a task names none."""
CLASSES = Within(0, 10**6, "each class is an output of the network")
IMAGES = Within(0, 10**9, "no data set has more images")
SIDE = Within(0, 4096, "a batch of such images fits into no memory")
BATCH = Within(2, 10**6, "a batch must fit into the memory of a device")


@dataclass(frozen=True)
class DataConfig:
    source: str
    mean: tuple[float, ...] = ()
    """Of pixels from 0 to 1, by channel; of vectors by column. Own data and embedded tables: measured from all
    training data where none is named."""
    std: tuple[float, ...] = ()
    val: float = 0.0
    """Fraction of the training set held out for validation (per seed, the same for all methods)."""
    official_val: bool = False
    """Validate on the split that the data set itself provides."""
    train_images: Annotated[int, IMAGES] = 0
    """Train on a fixed random subset of this many images; 0 = all."""
    test_images: Annotated[int, IMAGES] = 0
    image_size: Annotated[int, SIDE] = 0
    """Side length of what the network sees; 0 = as the images are."""
    test_holdout: Annotated[int, IMAGES] = later(0)
    """Leave so many test images out, drawn by the seed. The public code of the main paper: 1000."""
    val_images: Annotated[int, IMAGES] = later(0)
    """Validate on a fixed random subset of the data set's own validation split; 0 = all."""
    cache_size: Annotated[int, SIDE] = later(0)
    """Image files are kept with this shorter side and cropped to image_size; 0 = resized to image_size × image_size."""
    attribute: str = later("Attractive")
    """celeba: the attribute that is the class."""
    folders: tuple[str, ...] = later(())
    """imagenet, folder: only these class folders."""
    path: str = unidentified("")
    """folder, arrays, vectors, features: where the data lies, relative to the task file. What it is, its hash says."""
    test_path: str = unidentified("")
    """vectors: the table to test on, if it is a file of its own."""
    outliers: str = unidentified("")
    """Another task, by name or file, whose training images are outliers for methods that need some; their labels are
    ignored. A job that trains on them has their hash."""
    train_labels: str = unidentified("")
    """A file of labels for all training images, in their order, in place of their own: `FILE.npy` or
    `FILE.npz:ARRAY`, relative to the task file or to the folder of the data sets. Test images keep their labels."""
    train_labels_sha256: str = later("")
    """The SHA-256 of these labels; filled in when jobs are planned. Labels with another one are refused."""
    classes: Annotated[int, CLASSES] = later(0)
    """folder, arrays, vectors: how many classes there must be; 0 = as many as there are."""
    test_share: float = later(0.0)
    """folder, arrays, vectors: the share of the data kept for testing where no test split is provided."""
    channels: Annotated[int, Within(0, 3, "images are grey or coloured")] = later(0)
    """folder: 1 reads images grey, 3 in colour; 0 = as many as mean has numbers, in colour where it is measured."""

    leave_out: tuple[Annotated[int, CLASSES], ...] = later(())
    """Numbers of classes without which is trained, validated and tested; the others are renumbered. An evaluation set
    of new classes can be made of their test images."""
    labels: str = later("label")
    """vectors: the column of the classes in a table."""
    columns: tuple[str, ...] = later(())
    """vectors: the columns of a table that are used, by name or pattern (`pixel_*`); `!id` leaves one out. Empty: all
    but the labels."""
    missing: Literal["refuse", "median"] = later("refuse")
    """vectors: what becomes of a missing number; `median` takes that of the training data."""
    constant: Literal["refuse", "drop"] = later("refuse")
    """vectors: what becomes of a column with the same value in all training data."""
    one_hot: tuple[str, ...] = later(())
    """vectors: the columns of text in a table, by name or pattern; each of their values becomes a column of 0 and 1."""

    def __post_init__(self) -> None:
        check(0 <= self.val < 1, f"val must be at least 0 and below 1, got {self.val}")
        check(not (self.val and self.official_val), "val and official_val exclude each other")
        check(len(self.mean) == len(self.std), "mean and std need one number per channel each")
        check(
            bool(self.mean) or self.source in MEASURED,
            f"mean and std are missing; only those of source {', '.join(MEASURED)} are measured",
        )
        check(self.channels in (0, 1, 3), f"channels must be 1 (grey) or 3 (colour), got {self.channels}")
        check(
            not self.mean or self.channels in (0, len(self.mean)),
            f"channels = {self.channels}, but mean has {counted(len(self.mean), 'number')}",
        )
        check(all(s > 0 for s in self.std), "std must be positive")
        check(
            self.cache_size == 0 or 0 < self.image_size <= self.cache_size,
            f"image_size = {self.image_size} must be positive and at most cache_size = {self.cache_size}",
        )
        check(len(set(self.folders)) == len(self.folders), "folders must name each class once")
        check(len(set(self.leave_out)) == len(self.leave_out), "leave_out must name each class once")
        check(0 <= self.test_share < 1, f"test_share must be at least 0 and below 1, got {self.test_share}")
        check(
            not (self.train_labels and self.leave_out),
            "train_labels and leave_out exclude each other: an image of a class left out could come back under the "
            "label of another",
        )
        check(not self.val_images or self.official_val, "val_images is a part of the official_val split; set that too")

    @property
    def is_own(self) -> bool:
        """Return whether these are a user's own data."""
        return self.source in OWN_SOURCES

    @property
    def channels_read(self) -> int:
        """Return the number of channels that image files are decoded to."""
        return len(self.mean) or self.channels or 3

    @property
    def images_alone(self) -> "DataConfig":
        """Return the settings for those who need the images and not what the task calls them."""
        return replace(self, train_labels="", train_labels_sha256="")

    @property
    def has_validation(self) -> bool:
        return self.val > 0 or self.official_val


@dataclass(frozen=True)
class BoundConfig:
    """Constants of the bound that --track-bound computes. They change no result."""

    alpha: Positive = 1.0
    beta: Positive = 1.0
    rho: Positive = 1.0
    rho_prime: Positive = 1.0
    abstention_cost: Positive = 0.5
    """λ, what abstaining costs where an error costs 1."""
    delta: float = 0.05
    """The bound holds with probability 1 − δ."""
    threshold: float = 0.5
    """h: below this confidence the classifier abstains."""

    def __post_init__(self) -> None:
        check(0 < self.delta < 1, f"delta must lie between 0 and 1, got {self.delta:g}")
        check(0 <= self.threshold <= 1, f"threshold must lie between 0 and 1, got {self.threshold:g}")


@dataclass(frozen=True)
class ResourcesConfig:
    """What a job of the task needs of a cluster's node. It changes no result."""

    cpus: Annotated[float, Within(0, 4096, "no node has more cores")] = 0.0
    """0: as many as it has threads."""
    gpus: Annotated[float, Within(0, 64, "no node has more GPUs")] = 1.0
    """Where the cluster has GPUs; a small network may share one: 0.25."""
    memory_gb: Annotated[float, Within(0, 100_000, "no node has more memory")] = 0.0
    """0: nothing is reserved."""

    def __post_init__(self) -> None:
        check(self.gpus <= 1 or self.gpus.is_integer(), f"gpus above 1 must be whole, got {self.gpus:g}")


@dataclass(frozen=True)
class TaskConfig:
    name: str
    title: str
    data: DataConfig
    network: NetworkConfig
    optimizer: OptimizerConfig
    epochs: Annotated[int, EPOCHS]
    batch_size: Annotated[int, BATCH]
    methods: tuple[str, ...]
    """Columns of a run without --methods, in the order of the table."""
    reference: str
    """The method the significance markers compare with."""
    coverages: tuple[float, ...]
    """In per cent, in steps of 0.5."""
    baseline: str = ""
    """The method over which the gain of the others is split into ranking and classifier."""
    schedule: ScheduleConfig = ScheduleConfig()
    augment: AugmentConfig = AugmentConfig()
    averaging: AveragingConfig = later(AveragingConfig())
    mixing: MixingConfig = later(MixingConfig())
    seeds: Annotated[int, SEEDS] = 5
    eval_batch_size: Annotated[int, Within(1, BATCH.most, BATCH.why)] = 500
    threads: Annotated[int, Within(1, 1024, "no machine has more cores")] = 1
    """CPU threads per job. The number changes the bits, so it belongs to the task and not to the machine."""
    channels_last: bool = later(False)
    """Keep images and filters pixel by pixel, not channel by channel. Changes the bits, as the next two do."""
    amp: Literal["off", "bf16", "fp16"] = later("off")
    """Compute the network in half precision; losses, scores and averages stay in single precision."""
    compile: bool = later(False)
    """Have torch.compile translate the network."""
    tf32: bool = later(False)
    """On NVIDIA GPUs, let convolutions and products read 10 bits of a single-precision factor instead of 23. Off, as
    when the papers were written; this costs speed (`doctor` measures how much). Torch itself turns it on for
    convolutions."""
    sync_batchnorm: bool = later(False)
    """On several GPUs, have BatchNorm normalise with the whole batch and not with each GPU's part of it."""
    checkpoint: Literal["last", "best"] = "last"
    """Which epoch is tested: the last, or the earliest with the best validation accuracy."""
    evaluate_at: tuple[Annotated[int, EPOCHS], ...] = later(())
    """Predictions are stored after so many epochs too."""
    model_coverages: tuple[float, ...] = (95, 90, 85, 80, 75, 70)
    """In per cent: where methods that are trained for one coverage are trained."""
    checkpoint_seconds: Annotated[float, Within(0, 10**9)] = 60.0
    """An interrupted job loses at most about this much work."""
    bound: BoundConfig = BoundConfig()
    resources: ResourcesConfig = ResourcesConfig()
    method: dict[str, Any] = field(default_factory=dict)
    """Settings by method file (for all its labels) or by label."""
    evaluate: tuple[EvaluationConfig, ...] = ()
    """What the classifiers are tried on beyond the test images."""
    tune: dict[str, Any] = field(default_factory=dict)
    """What `tune` tries, by method file or label: field → values."""
    tune_val: float = 0.2
    """The share of the training images that trials are compared on. Nothing else sees them, not even validation."""

    def __post_init__(self) -> None:
        check(
            self.checkpoint == "last" or self.data.has_validation,
            "checkpoint = 'best' needs validation images: set data.val",
        )
        check(
            is_plain(self.name) and self.name.lower() not in RESERVED,
            f"a task cannot be called '{self.name}', which names its folder of results; rename the file",
        )
        check(bool(self.methods), "methods must name at least one method")
        check_coverages(self.coverages)
        check_coverages(self.model_coverages)
        check(
            all(1 <= epoch <= self.epochs for epoch in self.evaluate_at),
            f"evaluate_at must lie between 1 and epochs = {self.epochs}, got {list(self.evaluate_at)}",
        )
        for name, settings in self.method.items():
            check(isinstance(settings, Mapping), f"method.{name} must be a table, got {shown(settings)}")
        for name, grid in self.tune.items():
            check(
                isinstance(grid, Mapping) and all(isinstance(values, list) and values for values in grid.values()),
                f"tune.{name} must be a table of lists, e.g. weight = [0.1, 0.5]",
            )
        check_names(self.evaluate)
        check(0 < self.tune_val < 1, f"tune_val must lie between 0 and 1, got {self.tune_val:g}")

    @property
    def trained(self) -> "TaskConfig":
        """Return the task of the trainings whose weights this one averages: itself, where it does not average."""
        if not self.averaging.is_on:
            return self
        held = replace(self.schedule, **self.averaging.hold(self.epochs))
        return replace(self, averaging=AveragingConfig(), schedule=held)

    @property
    def ingredients(self) -> tuple[Ingredient, ...]:
        """Return the ingredients that it has, in the order in which labels name them."""
        return tuple(each for each in ALL if value_of(self, each.field) == each.value)

    @property
    def suffix(self) -> str:
        """Return what labels of its runs have after the name of the method."""
        return label_suffix(self.ingredients)


def value_of(config: Any, path: str) -> Any:
    """Return the value of a setting by its name in the file, such as `optimizer.lr`."""
    for name in path.split("."):
        config = getattr(config, name)
    return config


def check_coverages(coverages: Iterable[float]) -> None:
    """Raise a ValueError unless there are coverages, all in per cent and in steps of 0.5."""
    coverages = list(coverages)
    check(bool(coverages), "at least one coverage is needed")
    for c in coverages:
        check(
            0 < c <= 100 and float(2 * c).is_integer(),
            f"coverages are per cent above 0 and up to 100 in steps of 0.5, got {c:g}",
        )
