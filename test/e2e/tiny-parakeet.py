"""Writes a folder with a network of Parakeet TDT's shape: in loud frames it says its sentence, word by word.

Usage: tiny-parakeet.py FOLDER
"""

import json
import sys
from pathlib import Path

import numpy as np
from onnx import numpy_helper, parser, save

TOKENS = ["▁Well", ",", "▁good", "▁mor", "ning", ".", "<blk>"]
BLANK = len(TOKENS) - 1
DURATIONS = 5
MEL_BANDS = 128

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)

# Mean of 8 frames in place of the encoder's subsampling.
encoder = parser.parse_model("""
<ir_version: 8, opset_import: ["": 17]>
encoder (float[B, 128, T] audio_signal, int64[B] length) => (float[B, 128, S] outputs, int64[B] encoded_lengths) {
  outputs = AveragePool<kernel_shape = [8], strides = [8], ceil_mode = 1>(audio_signal)
  seven = Constant<value = int64 {7}>()
  eight = Constant<value = int64 {8}>()
  padded = Add(length, seven)
  encoded_lengths = Div(padded, eight)
}
""")

# Row of a token: the scores after it, of the next token and of a step of 4 frames.
after = np.zeros((len(TOKENS), len(TOKENS) + DURATIONS), np.float32)
for token in range(len(TOKENS)):
    after[token, [0 if token == BLANK else (token + 1) % BLANK, len(TOKENS) + 4]] = 1
quiet = np.zeros(len(TOKENS) + DURATIONS, np.float32)
quiet[[BLANK, len(TOKENS) + 1]] = 1

decoder = parser.parse_model("""
<ir_version: 8, opset_import: ["": 17]>
decoder (float[1, 128, 1] encoder_outputs, int32[1, 1] targets, int32[1] target_length,
         float[2, 1, 4] input_states_1, float[2, 1, 4] input_states_2)
     => (float[1, 1, 1, N] outputs, int32[1] prednet_lengths,
         float[2, 1, 4] output_states_1, float[2, 1, 4] output_states_2) {
  level = ReduceMean(encoder_outputs)
  zero = Constant<value = float {0.0}>()
  is_loud = Greater(level, zero)
  said = Gather(after, targets)
  scores = Where(is_loud, said, quiet)
  axis = Constant<value = int64[1] {1}>()
  outputs = Unsqueeze(scores, axis)
  prednet_lengths = Identity(target_length)
  output_states_1 = Identity(input_states_1)
  output_states_2 = Identity(input_states_2)
}
""")
decoder.graph.initializer.extend([numpy_helper.from_array(after, "after"), numpy_helper.from_array(quiet, "quiet")])

save(encoder, folder / "encoder-model.onnx")
save(decoder, folder / "decoder_joint-model.onnx")
(folder / "vocab.txt").write_text("".join(f"{token} {index}\n" for index, token in enumerate(TOKENS)), encoding="utf-8")
config = {"model_type": "nemo-conformer-tdt", "features_size": MEL_BANDS, "subsampling_factor": 8}
(folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
