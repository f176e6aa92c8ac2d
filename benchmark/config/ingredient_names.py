"""Name the ingredients: in labels, on the command line, and in lists."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from benchmark.base.errors import UserError
from benchmark.base.names import canonical, match_name


@dataclass(frozen=True)
class Ingredient:
    """What people call an ingredient, and the setting that it stands for."""

    factor: str
    """What it is one level of: two of the same factor exclude each other."""
    title: str
    """In labels: SR+SAM+SWA."""
    field: str
    value: str
    about: str

    @property
    def override(self) -> str:
        return f"{self.field}={self.value}"


def averaging(title: str, about: str) -> Ingredient:
    return Ingredient("averaging", title, "averaging.name", title.lower(), about)


def steps(title: str, about: str) -> Ingredient:
    return Ingredient("steps", title, "optimizer.sharpness", title.lower(), about)


def mixing(title: str, about: str) -> Ingredient:
    return Ingredient("mixing", title, "mixing.name", title.lower(), about)


ALL = (
    mixing("mixup", "mixed images and labels; for methods that can learn from two labels"),
    mixing("CutMix", "a box of another image; for methods that can learn from two labels"),
    mixing("RegMixup", "plain cross-entropy of mixed images, added to the method's loss"),
    Ingredient("classifier", "cosine", "network.classifier", "cosine", "logits are scaled cosines, without bias"),
    steps("SAM", "sharpness-aware steps: the gradient where the loss is worst nearby; two passes a step"),
    steps("F-SAM", "the same along the noise of the batch alone (friendly)"),
    steps("ASAM", "the same in a neighbourhood that is scaled with the weights"),
    averaging("SWA", "the mean of the weights after each epoch of the last part of the training"),
    averaging("EMA", "the moving mean of the weights over all steps"),
)
"""In the order in which labels name them."""
INGREDIENTS = {each.title.lower(): each for each in ALL}


def label_suffix(used: Iterable[Ingredient]) -> str:
    """Return what a label has after the name of the method: `+SAM+SWA`."""
    wanted = set(used)
    return "".join(f"+{each.title}" for each in ALL if each in wanted)


def find_ingredients(names: Iterable[str]) -> tuple[Ingredient, ...]:
    """Return the ingredients that are meant. Refuse two of which only one can be had."""
    found = tuple(INGREDIENTS[match_name(name, INGREDIENTS, "ingredient")] for name in names)
    by_factor: dict[str, Ingredient] = {}
    for each in found:
        other = by_factor.setdefault(each.factor, each)
        if other != each:
            apart = f"name them apart, e.g. --methods SR+{other.title} SR+{each.title}"
            raise UserError(f"{other.title} and {each.title} exclude each other; {apart}")
    return tuple(dict.fromkeys(found))


def split_label(name: str, is_whole: Callable[[str], object] = lambda name: False) -> tuple[str, tuple[str, ...]]:
    """Return what comes before the ingredients that a name ends with, and the names of these.

    What `is_whole` is not split further.
    """
    front, plus, last = name.rpartition("+")
    if not plus or canonical(last) not in INGREDIENTS or is_whole(name):
        return name, ()
    base, names = split_label(front, is_whole)
    return base, (*names, last)
