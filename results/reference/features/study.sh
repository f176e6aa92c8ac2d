#!/bin/sh
# The run on features, from the images to the records. From the project's root:
# sh results/reference/features/study.sh DATA_FOLDER lite0.safetensors OUT
# Every line can be stopped and started again; what is done stays done.
set -e
export SELBENCH_DATA=${1:?the folder with cifar-10, cifar-100 and celeba} WEIGHTS=${2:?the file that weights.py writes}
OUT=${3:?a folder for the results}
HERE=results/reference/features TASKS="$OUT/tasks"
mkdir -p "$TASKS"
cp $HERE/*.toml "$TASKS"

# The features of all images, once, and the task files for them: 60,000 images take two to four minutes on two cores.
features() { python run_all.py features "$@" --network timm:tf_efficientnet_lite0 --weights "$WEIGHTS" --size 128; }
features cifar100 --set data.val=0.1 --set data.train_images=10000 --to "$TASKS/cifar100-lite0.toml"
features cifar10 --set data.val=0.1 --set data.train_images=10000 --to "$TASKS/cifar10-lite0.toml"
features celeba --to "$TASKS/celeba-lite0.toml"

# Settings, by AURC on 20 % of the training images (seed 0), read with the method's own score. The ledger is tune/*.md.
tune() { python run_all.py tune "$TASKS/$task.toml" "$@" --results "$OUT/tuning"; }
recipe() { tune sr --grid optimizer.lr=0.02,0.05,0.1,0.2 --grid network.dropout=0.2,0.5; }
for task in cifar100-features cifar10-features faces-features; do
    recipe
    case $task in cifar100*) rewards=2.2,4.6,10,20 ;; cifar10*) rewards=2.2,3.2,4.6,8 ;; *) rewards=1.2,1.5,1.8,2 ;; esac
    tune ccl-sc --grid weight=0.1,0.5,1,2
    tune ccl-sc+sat+em --grid weight=0.1,0.5,1,2
    tune dg --grid reward=$rewards
    tune sat --grid target_momentum=0.8,0.9,0.95,0.99
    tune sat+em --grid entropy_weight=0.001,0.01,0.1,0.3
    tune focal --grid gamma=0.5,1,2,3
    tune mmce --grid weight=0.5,1,2,4
    tune aucoc --grid weight=0.1,1,3,10
    tune crl --grid weight=0.1,0.5,1,2
    tune "label smoothing" --grid smoothing=0.02,0.05,0.1,0.2
    tune logitnorm --grid temperature=0.04,0.1,0.3,1
    tune "soft ece" --grid weight=0.03,0.1,0.3,1
    tune "soft avuc" --grid weight=0.03,0.1,0.3,1
    tune tal --grid longest=20,40,70,100
    tune adafocal --grid rate=0.25,0.5,1,2
done

# Where the winner stood at the end of its grid, one value beyond it.
extend() { task=$1; shift; tune "$@"; }
extend cifar100-features ccl-sc+sat+em --grid weight=4
extend cifar100-features dg --grid reward=40
extend cifar100-features sat --grid target_momentum=0.6
extend cifar100-features sat+em --grid entropy_weight=1
extend cifar100-features focal --grid gamma=0.25
extend cifar100-features aucoc --grid weight=0.03
extend cifar100-features "label smoothing" --grid smoothing=0.01
extend cifar100-features "soft ece" --grid weight=0.01
extend cifar100-features tal --grid longest=14
extend cifar10-features ccl-sc --grid weight=0.05
extend cifar10-features ccl-sc+sat+em --grid weight=0.05
extend cifar10-features sat --grid target_momentum=0.6
extend cifar10-features sat+em --grid entropy_weight=1
extend cifar10-features focal --grid gamma=0.25
extend cifar10-features mmce --grid weight=0.25
extend cifar10-features aucoc --grid weight=0.03
extend cifar10-features "label smoothing" --grid smoothing=0.01
extend cifar10-features "soft avuc" --grid weight=0.01
extend cifar10-features tal --grid longest=14
extend cifar10-features adafocal --grid rate=4
extend faces-features sr --grid optimizer.lr=0.01,0.02 --grid network.dropout=0.1,0.2
extend faces-features ccl-sc --grid weight=4
extend faces-features sat --grid target_momentum=0.6
extend faces-features crl --grid weight=0.05
extend faces-features "label smoothing" --grid smoothing=0.01
extend faces-features logitnorm --grid temperature=3
extend faces-features "soft ece" --grid weight=0.01
extend faces-features "soft avuc" --grid weight=3
extend faces-features tal --grid longest=14

# The runs: all methods, ten seeds. Then scikit-learn's forest and logistic regression on the same vectors.
for task in cifar100-features cifar10-features faces-features; do
    python run_all.py --datasets "$TASKS/$task-tuned.toml" --methods all --seeds 10 --results "$OUT"
    python $HERE/forests.py "$TASKS/$task-tuned.toml" "$SELBENCH_DATA" "$OUT/forests/$task"
    python run_all.py score "$OUT/forests/$task"/*.npz --task "$task-tuned" --paired --results "$OUT"
done

# Small things only; the lines of single runs (runs.csv) can be made again by `tables`.
cp -r "$OUT/tuning/tune" "$OUT/"
python run_all.py figures --results "$OUT"
python run_all.py pack "$OUT" --to results/reference
python run_all.py tables --results results/reference --out results/reference
rm results/reference/tables/*-features-tuned-runs.csv

# One table for all of it: all methods on features, and the README's table with its figure.
summary() { python run_all.py summary --results results/reference --out results/reference "$@"; }
summary --name features --tasks cifar10-features-tuned cifar100-features-tuned faces-features-tuned
summary --name field --short --tasks "cifar10-cpu-tuned=CIFAR-10, small network" "cifar100-cpu-tuned=CIFAR-100, small network" \
    "cifar10-features-tuned=CIFAR-10, features" "cifar100-features-tuned=CIFAR-100, features" "faces-features-tuned=faces, features" \
    --rows deep-ensemble sure+ fmfp "soft avuc" ccl-sc "ccl-sc released" sat+sr sat sat+em+sr sat+em dg
rm results/reference/figures/f*.pdf
