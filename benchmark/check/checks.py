"""Check the contract of `interface.py`, for every method of the suite and for a user's own file."""

import copy
import re
import statistics
import time
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
from torch import nn

from benchmark.base.errors import UserError
from benchmark.base.schema import build
from benchmark.base.units import counted
from benchmark.check.findings import Broken, Check, Finding, make_checks, require
from benchmark.check.harness import (
    BATCH,
    EPOCH,
    NUM_CLASSES,
    NUM_TRAIN,
    Candidate,
    differing,
    images,
    loss_of,
    make_batch,
    moved,
    own_state,
    part,
    random_logits,
    step_loss,
    stored,
    train,
    with_outliers,
)
from benchmark.check.ingredients import mixed_labels, second_pass
from benchmark.check.sync_guard import line_of, no_host_syncs
from benchmark.config.training import NetworkConfig
from benchmark.interface import Batch, Contestant, Derived, Method, Recipe
from benchmark.measure.catalogue import OWN, POST_HOC, Predicted, Unavailable
from benchmark.measure.prediction import Evidence, Floats, Prediction, Stored
from benchmark.measure.scores import Confidence
from benchmark.train.distributed import each_tensor
from benchmark.train.networks import build_network
from benchmark.train.trainer import trained_parameters


def says_what_it_is(candidate: Candidate) -> None:
    require(bool(re.search(r"(19|20)\d\d", candidate.method.reference)), "reference names no year, such as: ours, 2026")
    try:
        build(candidate.method.Config, {"no such setting": 1}, candidate.label)
    except UserError:
        return
    raise Broken("an unknown setting is accepted")


def loss_and_gradients(candidate: Candidate) -> None:
    method = train(candidate.make())
    step = method.training_step(make_batch(method), EPOCH)
    require(step.loss.shape == (), f"the loss has shape {tuple(step.loss.shape)}; return its mean")
    require(bool(torch.isfinite(step.loss)), f"the loss is {step.loss}")
    for name, value in step.logs.items():
        require(value.shape == (), f"log '{name}' has shape {tuple(value.shape)}; logs are 0-d")
        require(not value.requires_grad, f"log '{name}' holds on to the graph; detach it")
    method.zero_grad()
    step.loss.backward()  # type: ignore[no-untyped-call]
    for name, parameter in method.named_parameters():
        if parameter.requires_grad:
            require(parameter.grad is not None, f"no gradient reaches {name}")
            require(bool(torch.isfinite(parameter.grad).all()), f"the gradient of {name} is not finite")  # type: ignore[arg-type]


def purity(candidate: Candidate) -> None:
    method = train(candidate.make())
    before = own_state(method)
    method.training_step(make_batch(method), EPOCH)
    changed = differing(before, own_state(method))
    require(not changed, f"training_step changes {', '.join(changed)}; write state in after_step only")


def determinism(candidate: Candidate) -> None:
    first, second = (train(candidate.make(dropout=0.5)).state_dict() for _ in range(2))
    changed = differing(first, second)
    require(not changed, f"two equal runs differ in {', '.join(changed[:3])}; draw only from torch's generator")


def state_round_trip(candidate: Candidate) -> None:
    first, second = train(candidate.make()), candidate.make()
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    changed = differing(train(first, 3, first=6).state_dict(), train(second, 3, first=6).state_dict())
    require(not changed, f"after loading, {', '.join(changed[:3])} go another way; keep all state in buffers")


def epoch_end(candidate: Candidate) -> None:
    method = train(candidate.make())
    for name, value in method.health().items():
        require(value.shape == () and bool(torch.isfinite(value)), f"health '{name}' is not a finite 0-d number")
    require(isinstance(method.notes(), list), "notes() must return a list of sentences")


def constant_network(candidate: Candidate, label: int) -> None:
    """Require finite losses where a saturated network says class 0 of everything, and all images have this label."""
    method = candidate.make(constant=True).train()
    batch = make_batch(method, labels=torch.full((BATCH,), label))
    optimizer = torch.optim.SGD(trained_parameters(method), lr=0.01)
    for index in range(4):
        loss = step_loss(method, optimizer, batch, index)
        require(bool(torch.isfinite(loss)), f"the loss is {float(loss)} in step {index}")
    gradients = [p.grad for p in method.parameters() if p.grad is not None]
    require(all(bool(torch.isfinite(g).all()) for g in gradients), "a gradient is not finite")


def odd_batches(candidate: Candidate) -> None:
    for size in (2, 3):
        method = candidate.make().train()
        loss = step_loss(method, torch.optim.SGD(trained_parameters(method), lr=0.01), make_batch(method, size))
        require(bool(torch.isfinite(loss)), f"the loss of a batch of {size} is {float(loss)}")


def no_order(candidate: Candidate) -> str:
    method = train(candidate.make())
    batch = make_batch(method)
    order = torch.randperm(BATCH, generator=torch.Generator().manual_seed(3))
    shuffled, plain = loss_of(method, part(batch, order)), loss_of(method, batch)
    if torch.allclose(shuffled, plain, atol=1e-5, rtol=1e-4):
        return ""
    require(method.couples_samples, f"the loss is {float(plain):.6g}, and {float(shuffled):.6g} in another order")
    return "it does, as it may where the samples are declared coupled"


def coupling(candidate: Candidate) -> str:
    """Compare the loss of a batch with that of its parts, in evaluation mode, where BatchNorm couples nothing."""
    if candidate.training_class().couples_samples:
        return "declared: the loss couples the samples of a batch"
    method = train(candidate.make()).eval()
    batch = make_batch(method)
    halves = [part(batch, rows) for rows in torch.split(torch.arange(BATCH), 5)]
    apart = sum(len(half.labels) * loss_of(method, half) for half in halves) / BATCH
    equal = torch.allclose(torch.as_tensor(apart), loss_of(method, batch), atol=1e-5, rtol=1e-4)
    require(equal, "the loss of a batch is not the mean of its samples'; declare couples_samples = True")
    return "the loss of a batch is the mean of its samples'"


def carry_per_sample(candidate: Candidate) -> None:
    """Require a carry that can be put together for after_step from the parts that several GPUs have."""
    method = train(candidate.make())
    try:
        each_tensor(method.training_step(make_batch(method), EPOCH).carry, BATCH, lambda rows: rows)
    except TypeError as error:
        raise Broken(str(error)) from None


def no_host_sync(candidate: Candidate) -> None:
    """Take steps on the meta device. It has no values to wait for: whatever needs one raises."""
    method = candidate.make(device="meta", dropout=0.5).train()
    optimizer = torch.optim.SGD(trained_parameters(method), lr=0.05, momentum=0.9)
    batch = moved(make_batch(method), torch.device("meta"))
    with no_host_syncs():
        for index in range(2):
            try:
                step_loss(method, optimizer, batch, index)
            except Exception as error:
                line = line_of(error)
                raise Broken(f"{' '.join(str(error).split())}{f' ({line})' if line else ''}") from error


def prediction_shapes(candidate: Candidate) -> None:
    if issubclass(candidate.method, Method):
        method = candidate.make().eval()
        before = copy.deepcopy(method.state_dict())
        stored(method, images())
        changed = differing(before, method.state_dict())
        require(not changed, f"predict changes {', '.join(changed)}")
    prediction = candidate.prediction()
    found = tuple(prediction.logits.shape)
    require(found == (BATCH, NUM_CLASSES), f"logits have shape {found}; expected (images, classes)")
    for name, value in prediction.aux.items():
        require(len(value) == BATCH, f"aux '{name}' has {counted(len(value), 'entry', 'entries')} for {BATCH} images")


def prediction_per_image(candidate: Candidate) -> str:
    """Require that what is said of an image does not depend on the images beside it."""
    if issubclass(candidate.method, Derived):
        logits = random_logits()
        order = np.random.default_rng(1).permutation(BATCH)
        whole, other = candidate.combined(logits).logits[order], candidate.combined([u[order] for u in logits]).logits
    elif candidate.training_class().stochastic:
        return "declared: predict draws random numbers"
    else:
        method = candidate.make()
        method = (train(method) if method.trains() else method).eval()
        batch = torch.cat([images(start) for start in range(3)])
        whole = stored(method, batch).logits
        other = np.concatenate([stored(method, rows).logits for rows in torch.split(batch, 7)])
    require(bool(np.allclose(whole, other, atol=1e-5, rtol=1e-4)), "an image's logits depend on its neighbours")
    return ""


def scores(candidate: Candidate) -> str:
    prediction = candidate.prediction()
    found = candidate.method.scores(prediction)
    require(bool(found), "scores() is empty; the published score comes first")
    for name, confidence in found.items():
        require(confidence.shape == (BATCH,), f"score '{name}' has shape {confidence.shape}; one number per image")
        require(bool(np.isfinite(confidence).all()), f"score '{name}' is not finite")
    again = candidate.method.scores(prediction)
    same = list(again) == list(found) and all((again[name] == found[name]).all() for name in found)
    require(same, "scores() differs from call to call")
    for name, confidence in found.items():
        known = built_in_confidence(name, prediction)
        same = known is None or bool(np.allclose(confidence, known))
        require(same, f"score '{name}' is not what {name} means in this suite; give it another name")
    return ", ".join(found)


def built_in_confidence(name: str, prediction: Stored) -> Confidence | None:
    """Return the confidences of a score of the suite; None where it has none of that name for such a prediction."""
    score = POST_HOC.get(name) or OWN.get(name)
    try:
        return None if score is None else score(Predicted(Evidence(prediction, np.zeros(0, np.int64))))
    except (Unavailable, KeyError):
        return None


def score_direction(candidate: Candidate) -> None:
    """Require scores that grow where one logit grows above fixed others, and further outputs fall, as doubt does."""
    gap = np.arange(1.0, 5.0)
    aux: dict[str, Floats] = {
        name: (1 / gap).reshape(-1, *(1,) * (value.ndim - 1)) * np.ones(value.shape[1:])
        for name, value in candidate.prediction().aux.items()
    }
    logits = gap[:, None] * np.eye(NUM_CLASSES)[0] + np.linspace(0, 0.4, NUM_CLASSES)
    for name, confidence in candidate.method.scores(Prediction(logits, None, aux)).items():
        steps = np.diff(confidence)
        require(bool(np.isfinite(confidence).all()), f"score '{name}' is {confidence} on hand-made predictions")
        require(bool((steps != 0).all()), f"score '{name}' does not tell more from less confident predictions")
        aux_rule = f" (aux {', '.join(aux)}: larger must mean more doubt)" if aux else ""
        require(bool((steps > 0).all()), f"score '{name}' falls where confidence grows{aux_rule}")


def cost(candidate: Candidate) -> str:
    """Return what a step costs against plain cross-entropy, taken in turns on a network that hides what is fixed."""
    shape = (3, 32, 32)
    method = candidate.make(widths=(32, 64), shape=shape).train()
    plain = build_network(NetworkConfig("small_cnn", (32, 64)), NUM_CLASSES, shape)
    own_optimizer = torch.optim.SGD(trained_parameters(method), lr=0.01)
    plain_optimizer = torch.optim.SGD(plain.parameters(), lr=0.01)
    labels = torch.arange(NUM_TRAIN)
    views = tuple(images(view, NUM_TRAIN, shape) for view in range(method.num_views))
    batch = with_outliers(Batch(views, labels % NUM_CLASSES, labels), method)
    ratios: list[float] = []
    for _ in range(15):
        started = time.perf_counter()
        step_loss(method, own_optimizer, batch)
        between = time.perf_counter()
        plain_optimizer.zero_grad()
        nn.CrossEntropyLoss()(plain(batch.images)[0], batch.labels).backward()
        plain_optimizer.step()
        ratios.append((between - started) / (time.perf_counter() - between))
    return f"{statistics.median(ratios):.1f} × a step of SR (plain cross-entropy)"


ALWAYS: dict[str, Check[Candidate]] = {
    "says what it is, refuses unknown settings": says_what_it_is,
    "predicts K logits per image": prediction_shapes,
    "predicts each image for itself": prediction_per_image,
    "scores are finite, one per image, pure": scores,
    "larger scores mean more confident": score_direction,
}
TRAINING: dict[str, Check[Candidate]] = {
    "loss and gradients are finite and reach the whole network": loss_and_gradients,
    "training_step writes no state": purity,
    "equal runs are equal to the bit": determinism,
    "a second pass leaves no trace": second_pass,
    "state_dict is the whole state": state_round_trip,
    "after_epoch, health and notes work": epoch_end,
    "a batch of one class, all predictions right": partial(constant_network, label=0),
    "a batch of one class, all predictions wrong": partial(constant_network, label=1),
    "odd small batches": odd_batches,
    "order within a batch does not matter": no_order,
    "samples are coupled only if declared": coupling,
    "what a step carries has a row per sample": carry_per_sample,
    "no host sync in a step (meta device)": no_host_sync,
    "cost of a step": cost,
}


def checks_for(method: type[Contestant]) -> dict[str, Check[Candidate]]:
    """Return the checks of a method; those of a step only if it trains, and of another's label only what it says."""
    if issubclass(method, Recipe):
        return {"says what it is, refuses unknown settings": says_what_it_is}
    if not issubclass(method, Method) or not method.trains():
        return ALWAYS
    mixes = {"mixed labels count by their shares": mixed_labels} if method.takes_mixed else {}
    return {**ALWAYS, **TRAINING, **mixes}


def examine(candidate: Candidate) -> Iterator[Finding]:
    """Make every check of a method in turn, whatever the others found."""
    return make_checks(checks_for(candidate.method), candidate)
