/*
 * Kaldi's log-mel filterbank (compute-fbank-feats): 80 bands 20..8000 Hz, 25 ms frames every 10 ms, snip edges, no
 * dither; per frame: mean removed, pre-emphasis 0.97, Hamming window, 512-point FFT, power, triangular mel bands,
 * natural log with a floor.
 *
 * Computes four frames at once, one per SIMD lane, so that the result of a frame does not depend on its place in a
 * block. The real FFT is a complex one of half the length plus Kaldi's usual split.
 */
#include <math.h>
#include <string.h>

#include "dsp.h"

#define RATE 16000
#define FRAME 400
#define SHIFT 160
#define FFT 512
#define HALF (FFT / 2)
#define BANDS 80
#define LOW_HZ 20.0f
#define HIGH_HZ 8000.0f
#define PRE_EMPHASIS 0.97f
#define FLOOR 1.1920929e-07f
#define SCALE 32768.0f
/* Frames in one call: about 10 s of audio, the input of the embedding trunk. */
#define MAX_FRAMES 1000
#define MAX_SAMPLES ((MAX_FRAMES - 1) * SHIFT + FRAME)

typedef float Lanes __attribute__((vector_size(16)));

static float input[MAX_SAMPLES];
static float output[MAX_FRAMES * BANDS];
static float window[FRAME];
static float cosine[HALF], sine[HALF]; /* of 2 pi k / FFT */
static uint8_t reversed[HALF];
static int band_first[BANDS], band_count[BANDS];
static float band_weight[BANDS][HALF];
static int ready;

static float mel(float hz) { return 1127.0f * logf(1.0f + hz / 700.0f); }

static void prepare(void) {
  for (int i = 0; i < FRAME; i++) window[i] = (float)(0.54 - 0.46 * cos(2 * PI * i / (FRAME - 1)));
  for (int k = 0; k < HALF; k++) {
    cosine[k] = (float)cos(2 * PI * k / FFT);
    sine[k] = (float)sin(2 * PI * k / FFT);
    int r = 0;
    for (int bit = 0; bit < 8; bit++) r |= ((k >> bit) & 1) << (7 - bit);
    reversed[k] = (uint8_t)r;
  }
  float low = mel(LOW_HZ), step = (mel(HIGH_HZ) - low) / (BANDS + 1), width = (float)RATE / FFT;
  for (int band = 0; band < BANDS; band++) {
    float left = low + (float)band * step, centre = low + (float)(band + 1) * step;
    float right = low + (float)(band + 2) * step;
    band_first[band] = -1;
    for (int bin = 0; bin < HALF; bin++) { /* Kaldi leaves the Nyquist bin out */
      float m = mel(width * (float)bin);
      if (m <= left || m >= right) continue;
      if (band_first[band] < 0) band_first[band] = bin;
      float weight = m <= centre ? (m - left) / (centre - left) : (right - m) / (right - centre);
      band_weight[band][bin - band_first[band]] = weight;
      band_count[band] = bin - band_first[band] + 1;
    }
  }
  ready = 1;
}

/* Loads four windowed frames from `first` on, as complex pairs in bit-reversed order; repeats the last one if fewer. */
static void load_frames(int first, int count, Lanes *re, Lanes *im) {
  Lanes frame[FFT];
  Lanes sum = {0, 0, 0, 0};
  int start[4];
  for (int lane = 0; lane < 4; lane++) start[lane] = (first + (lane < count ? lane : count - 1)) * SHIFT;
  for (int i = 0; i < FRAME; i++) {
    frame[i] = (Lanes){input[start[0] + i], input[start[1] + i], input[start[2] + i], input[start[3] + i]} * SCALE;
    sum += frame[i];
  }
  Lanes mean = sum / (float)FRAME;
  for (int i = 0; i < FRAME; i++) frame[i] -= mean;
  for (int i = FRAME - 1; i > 0; i--) frame[i] = (frame[i] - PRE_EMPHASIS * frame[i - 1]) * window[i];
  frame[0] = (frame[0] - PRE_EMPHASIS * frame[0]) * window[0];
  for (int i = FRAME; i < FFT; i++) frame[i] = (Lanes){0, 0, 0, 0};
  for (int k = 0; k < HALF; k++) {
    re[reversed[k]] = frame[2 * k];
    im[reversed[k]] = frame[2 * k + 1];
  }
}

/* In-place radix-2 complex FFT of HALF points, input in bit-reversed order. */
static void transform(Lanes *re, Lanes *im) {
  for (int size = 2; size <= HALF; size *= 2) {
    int half = size / 2, stride = FFT / size;
    for (int k = 0; k < half; k++) {
      float c = cosine[k * stride], s = sine[k * stride];
      for (int a = k; a < HALF; a += size) {
        int b = a + half;
        Lanes tr = re[b] * c + im[b] * s, ti = im[b] * c - re[b] * s;
        re[b] = re[a] - tr;
        im[b] = im[a] - ti;
        re[a] += tr;
        im[a] += ti;
      }
    }
  }
}

/* Power of bins 0..HALF-1 of the real signal, whose even samples are the real parts and odd ones the imaginary. */
static void power(const Lanes *re, const Lanes *im, Lanes *out) {
  Lanes dc = re[0] + im[0];
  out[0] = dc * dc;
  for (int k = 1; k < HALF; k++) {
    int m = HALF - k;
    Lanes er = (re[k] + re[m]) * 0.5f, ei = (im[k] - im[m]) * 0.5f;
    Lanes or = (im[k] + im[m]) * 0.5f, oi = (re[m] - re[k]) * 0.5f;
    Lanes xr = er + or * cosine[k] + oi * sine[k], xi = ei + oi * cosine[k] - or * sine[k];
    out[k] = xr * xr + xi * xi;
  }
}

/* Buffer for the caller's samples (16 kHz, -1..1), at most fb_capacity. */
EXPORT(fb_input) float *fb_input(void) { return input; }

EXPORT(fb_capacity) int fb_capacity(void) { return MAX_SAMPLES; }

EXPORT(fb_output) const float *fb_output(void) { return output; }

/* Filterbank of the first `samples` of the input. Returns the number of frames at fb_output, each of 80 values. */
EXPORT(fb_compute) int fb_compute(int samples) {
  if (samples < FRAME) return 0;
  if (samples > MAX_SAMPLES) return -1;
  if (!ready) prepare();
  int frames = 1 + (samples - FRAME) / SHIFT;
  Lanes re[HALF], im[HALF], spectrum[HALF];
  for (int first = 0; first < frames; first += 4) {
    int count = frames - first < 4 ? frames - first : 4;
    load_frames(first, count, re, im);
    transform(re, im);
    power(re, im, spectrum);
    for (int band = 0; band < BANDS; band++) {
      Lanes energy = {0, 0, 0, 0};
      const float *weight = band_weight[band];
      const Lanes *bins = spectrum + band_first[band];
      for (int i = 0; i < band_count[band]; i++) energy += bins[i] * weight[i];
      for (int lane = 0; lane < count; lane++) {
        float value = energy[lane] > FLOOR ? energy[lane] : FLOOR;
        output[(first + lane) * BANDS + band] = logf(value);
      }
    }
  }
  return frames;
}
