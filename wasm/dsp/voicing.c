/*
 * How periodic each tenth of a second is: voices are, breath, rustling and hiss are not. The sound is brought to 4 kHz by a moving
 * average whose first zero lies at 2 kHz; in it, two frames of 50 ms are compared with what stands 2.5 to 14.25 ms later (70 to
 * 400 Hz) by their normalised cross-correlation (Talkin, "A robust algorithm for pitch tracking", 1995), and the best lags of the two
 * are averaged. A tenth depends on its own 1600 samples alone, to the bit.
 */
#include <math.h>

#include "dsp.h"

#define HOP 1600
#define DECIMATION 4
#define AVERAGED 8
/* The last average of a tenth ends with it. */
#define SLOW ((HOP - AVERAGED) / DECIMATION + 1)
#define FRAME 200
#define SHORTEST_LAG 10
#define LONGEST_LAG 57
#define SPAN (FRAME + LONGEST_LAG)
/* Tenths in one call: two seconds of audio. */
#define MAX_HOPS 20

typedef float Lanes __attribute__((vector_size(16), aligned(4)));

static float input[MAX_HOPS * HOP];
static float output[MAX_HOPS];

EXPORT(vo_input) float *vo_input(void) { return input; }
EXPORT(vo_capacity) int vo_capacity(void) { return MAX_HOPS; }
EXPORT(vo_output) float *vo_output(void) { return output; }

static void decimate(const float *samples, float *slow) {
  for (int i = 0; i < SLOW; i++) {
    float sum = 0;
    for (int j = 0; j < AVERAGED; j++) sum += samples[i * DECIMATION + j];
    slow[i] = sum;
  }
}

/* Largest normalised cross-correlation of the first FRAME of SPAN samples with later ones, 0..1. */
static float periodicity(const float *slow) {
  float centred[SPAN], mean = 0, best = 0;
  double own = 0, later = 0;
  for (int i = 0; i < SPAN; i++) mean += slow[i];
  mean /= SPAN;
  for (int i = 0; i < SPAN; i++) centred[i] = slow[i] - mean;
  for (int i = 0; i < FRAME; i++) own += (double)centred[i] * centred[i];
  for (int i = SHORTEST_LAG; i < SHORTEST_LAG + FRAME; i++) later += (double)centred[i] * centred[i];
  for (int lag = SHORTEST_LAG; lag <= LONGEST_LAG; lag++) {
    Lanes sums = {0, 0, 0, 0};
    for (int i = 0; i < FRAME; i += 4) sums += *(const Lanes *)(centred + i) * *(const Lanes *)(centred + i + lag);
    float product = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    double scale = own * later;
    if (product > 0 && scale > 0) {
      float value = product / (float)sqrt(scale);
      if (value > best) best = value;
    }
    if (lag < LONGEST_LAG) {
      double in = centred[lag + FRAME], out = centred[lag];
      later += in * in - out * out;
    }
  }
  return best < 1 ? best : 1;
}

/* Of `hops` tenths from the start of the input. */
EXPORT(vo_compute) void vo_compute(int hops) {
  float slow[SLOW];
  for (int hop = 0; hop < hops && hop < MAX_HOPS; hop++) {
    decimate(input + hop * HOP, slow);
    output[hop] = 0.5f * (periodicity(slow) + periodicity(slow + SLOW - SPAN));
  }
}
