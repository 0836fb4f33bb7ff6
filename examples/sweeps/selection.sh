#!/bin/sh
# The sweeps, pictures and tables of "Which selection wins, and when" in docs/maps.md. 20 minutes of one core:
#   sh examples/sweeps/selection.sh FOLDER
set -e
plans=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && cd "$1"

for name in flow zero factors steps normalized; do
  attractor sweep "$plans/selection_$name.toml" --store "selection_$name.zarr" --workers 2
done

shares=initial_agreement,gradient_agreement,selection_agreement
draw() { # the store, the folder of the picture, and how
  store=selection_$1.zarr; out=selection_$2; shift 2
  attractor sweep draw "$store" --out "$out" "$@"
}
draw flow W --x initial_scale --y log_time --of $shares --panels measure --at parameterization=W
draw flow KQ --x initial_scale --y log_time --of $shares --panels measure --at parameterization=KQ
draw flow leaving --x initial_scale --lines parameterization --of initial_agreement --along log_time
draw flow settling --x initial_scale --lines parameterization --of settled --along log_time
draw flow end --x initial_scale --lines measure --of $shares --panels parameterization \
  --at log_time=256
draw zero zero --x log_time --lines measure --of selection_agreement,gradient_agreement \
  --at initial_scale=0
draw factors factors --x initial_scale --y log_time --of $shares --panels measure
draw factors factors_leaving --x initial_scale --of initial_agreement --along log_time
for name in W KQ; do
  draw steps steps_$name --x initial_scale --y learning_rate --of initial_agreement \
    --panels step --at parameterization=$name
  draw normalized normalized_$name --x initial_scale --y learning_rate --of initial_agreement \
    --panels step --at parameterization=$name
  draw normalized times_$name --x initial_scale --y learning_rate --of log_time \
    --panels step --at parameterization=$name
done
python "$plans/selection.py" .
