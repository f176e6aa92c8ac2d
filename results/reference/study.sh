#!/bin/sh
# The recorded run, from the data to this folder. From the project's root: sh results/reference/study.sh DATA_FOLDER OUT
# Every line can be stopped and started again; what is done stays done.
set -e
export SELBENCH_DATA=${1:?the folder with cifar-10 and cifar-100} OUT=${2:?a folder for the results}
python run_all.py prepare cifar10 cifar100

# Settings, by AURC on 20 % of the training images (seed 0). The ledger is tune/*.md; the winners are in configs/*-cpu-tuned.toml.
tune() { python run_all.py tune "$@" --results "$OUT/tuning" --keep-trunks; }
for task in cifar10-cpu cifar100-cpu; do
    tune $task ccl-sc --grid weight=0.1,0.5,1.0 --grid warmup_epochs=5,10
    tune $task dg --grid reward=2.2,3.2,4.6,6.0 --grid warmup_epochs=5,10
    tune $task sat --grid target_momentum=0.9,0.99 --grid warmup_epochs=5,10
    tune $task sat+em --grid entropy_weight=0.001,0.01,0.1 --grid warmup_epochs=5,10
done
tune cifar10-cpu focal --grid gamma=1,2,3
tune cifar10-cpu mmce --grid weight=2,8
tune cifar10-cpu aucoc --grid weight=1,10
tune cifar10-cpu ccl-sc+sat+em --grid weight=0.1,0.5 --grid warmup_epochs=5,10
# At the winners so far: other momenta, and rewards beyond the end of the grid where the last one won.
tune cifar10-cpu ccl-sc --grid momentum=0.9,0.999 --grid weight=0.1 --grid warmup_epochs=10
tune cifar10-cpu "ccl-sc released" --grid momentum=0.9,0.99,0.999 --grid weight=0.1 --grid warmup_epochs=10
tune cifar100-cpu ccl-sc --grid momentum=0.9,0.999 --grid weight=0.5 --grid warmup_epochs=5
tune cifar100-cpu dg --grid reward=8,10 --grid warmup_epochs=10

# The runs, in parts of at most 40 minutes on two cores. The last line of each task shows all its methods.
run() { python run_all.py "$@" --results "$OUT/reference" --keep-trunks; }
group="ccl-sc sat+em sat dg sr ccl-sc-frozen ccl-sc-released"
run --datasets cifar10-cpu-tuned --methods $group
run --datasets cifar100-cpu-tuned
run --datasets cifar10-cpu-tuned
run --datasets digits gaussians --methods all

# Small things only.
python run_all.py figures --results "$OUT/reference" --datasets cifar100-cpu-tuned --methods ccl-sc sat+em sat dg sr
cp "$OUT/reference/figures/cifar100-cpu-tuned-risk-coverage.png" results/reference/risk-coverage.png
python run_all.py figures --results "$OUT/reference"
cp -r "$OUT/tuning/tune" "$OUT/reference/"
python run_all.py pack "$OUT/reference" --to results/reference
python run_all.py tables --results results/reference --out results/reference
