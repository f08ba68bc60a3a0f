/*
 * Mel powers for the segmentation network: 64 bands 50..7900 Hz, 25 ms frames (mean removed, periodic Hann) every 10
 * ms, 400-point DFT, power, triangular bands of at least 42 Hz on either side. No logarithm, because the network takes
 * level and floor from its whole window. The definition is training/segmentation/frontend.py.
 *
 * Computes four frames at once, one per SIMD lane, so that the bits of a frame do not depend on its place in a block.
 * The real DFT is a complex one of half the length, 200 = 4 x 2 x 5 x 5 points in mixed radix (Singleton 1969), plus
 * the usual split.
 */
#include <math.h>

#include "dsp.h"

#define RATE 16000
#define FRAME 400
#define SHIFT 160
#define HALF (FRAME / 2)
#define BINS (HALF + 1)
#define BANDS 64
#define LOW_HZ 50.0
#define HIGH_HZ 7900.0
#define MIN_HALF_WIDTH_HZ 42.0
/* Frames in one call: a second of audio. */
#define MAX_FRAMES 100
#define MAX_SAMPLES ((MAX_FRAMES - 1) * SHIFT + FRAME)
#define STAGES 4

typedef float Lanes __attribute__((vector_size(16)));
typedef struct {
  Lanes re, im;
} Complex;

static const int radices[STAGES] = {4, 2, 5, 5};
static float input[MAX_SAMPLES];
static float output[MAX_FRAMES * BANDS];
static float window[FRAME];
static float cosine[FRAME], sine[FRAME]; /* of 2 pi k / FRAME */
static uint8_t place[HALF];
static int band_first[BANDS], band_count[BANDS];
static float band_weight[BANDS][BINS];
static int ready;

static double mel(double hz) { return 2595 * log10(1 + hz / 700); }

static double hz_of_edge(int edge) {
  double low = mel(LOW_HZ), step = (mel(HIGH_HZ) - low) / (BANDS + 1);
  return 700 * (pow(10, (low + edge * step) / 2595) - 1);
}

static void prepare_band(int band) {
  double centre = hz_of_edge(band + 1), left = hz_of_edge(band), right = hz_of_edge(band + 2);
  if (left > centre - MIN_HALF_WIDTH_HZ) left = centre - MIN_HALF_WIDTH_HZ;
  if (right < centre + MIN_HALF_WIDTH_HZ) right = centre + MIN_HALF_WIDTH_HZ;
  band_first[band] = -1;
  for (int bin = 0; bin < BINS; bin++) {
    double hz = (double)bin * RATE / FRAME;
    double rising = (hz - left) / (centre - left), falling = (right - hz) / (right - centre);
    double weight = rising < falling ? rising : falling;
    if (weight <= 0) continue;
    if (band_first[band] < 0) band_first[band] = bin;
    band_weight[band][bin - band_first[band]] = (float)weight;
    band_count[band] = bin - band_first[band] + 1;
  }
}

static void prepare(void) {
  for (int i = 0; i < FRAME; i++) {
    window[i] = (float)(0.5 - 0.5 * cos(2 * PI * i / FRAME));
    cosine[i] = (float)cos(2 * PI * i / FRAME);
    sine[i] = (float)sin(2 * PI * i / FRAME);
  }
  /* Order of the points in which the sub-transforms of every stage are consecutive. */
  for (int i = 0; i < HALF; i++) {
    int rest = i, length = HALF, at = 0;
    for (int stage = STAGES - 1; stage >= 0; stage--) {
      length /= radices[stage];
      at += rest % radices[stage] * length;
      rest /= radices[stage];
    }
    place[i] = (uint8_t)at;
  }
  for (int band = 0; band < BANDS; band++) prepare_band(band);
  ready = 1;
}

/*
 * Loads four windowed frames from `first` on, as complex pairs in the order of `place`; repeats the last one if fewer.
 * Removes the mean of each: the window would spread an offset into the lowest bands, where it may exceed all speech.
 */
static void load_frames(int first, int count, Complex *points) {
  const float *start[4];
  for (int lane = 0; lane < 4; lane++) start[lane] = input + (first + (lane < count ? lane : count - 1)) * SHIFT;
  Lanes mean = {0, 0, 0, 0};
  for (int i = 0; i < FRAME; i++) mean += (Lanes){start[0][i], start[1][i], start[2][i], start[3][i]};
  mean *= 1.0f / FRAME;
  for (int i = 0; i < HALF; i++) {
    int even = 2 * i, odd = even + 1;
    Complex *point = points + place[i];
    point->re = (Lanes){start[0][even], start[1][even], start[2][even], start[3][even]};
    point->im = (Lanes){start[0][odd], start[1][odd], start[2][odd], start[3][odd]};
    point->re = (point->re - mean) * window[even];
    point->im = (point->im - mean) * window[odd];
  }
}

static Complex plus(Complex a, Complex b) { return (Complex){a.re + b.re, a.im + b.im}; }
static Complex minus(Complex a, Complex b) { return (Complex){a.re - b.re, a.im - b.im}; }
/* -i times a. */
static Complex turned(Complex a) { return (Complex){a.im, -a.re}; }

/* a times e^(-2 pi i k / FRAME). */
static Complex twisted(Complex a, int k) {
  float c = cosine[k], s = sine[k];
  return (Complex){a.re * c + a.im * s, a.im * c - a.re * s};
}

static void radix2(Complex *x, int stride) {
  Complex a = x[0], b = x[stride];
  x[0] = plus(a, b);
  x[stride] = minus(a, b);
}

static void radix4(Complex *x, int stride) {
  Complex a = plus(x[0], x[2 * stride]), b = minus(x[0], x[2 * stride]);
  Complex c = plus(x[stride], x[3 * stride]), d = turned(minus(x[stride], x[3 * stride]));
  x[0] = plus(a, c);
  x[stride] = plus(b, d);
  x[2 * stride] = minus(a, c);
  x[3 * stride] = minus(b, d);
}

static void radix5(Complex *x, int stride) {
  const float c1 = 0.30901699437494742f, c2 = -0.80901699437494742f;
  const float s1 = 0.95105651629515357f, s2 = 0.58778525229247313f;
  Complex zero = x[0];
  Complex a = plus(x[stride], x[4 * stride]), b = plus(x[2 * stride], x[3 * stride]);
  Complex p = minus(x[stride], x[4 * stride]), q = minus(x[2 * stride], x[3 * stride]);
  Complex u = {zero.re + a.re * c1 + b.re * c2, zero.im + a.im * c1 + b.im * c2};
  Complex v = {zero.re + a.re * c2 + b.re * c1, zero.im + a.im * c2 + b.im * c1};
  Complex r = turned((Complex){p.re * s1 + q.re * s2, p.im * s1 + q.im * s2});
  Complex t = turned((Complex){p.re * s2 - q.re * s1, p.im * s2 - q.im * s1});
  x[0] = plus(zero, plus(a, b));
  x[stride] = plus(u, r);
  x[2 * stride] = plus(v, t);
  x[3 * stride] = minus(v, t);
  x[4 * stride] = minus(u, r);
}

/* In-place complex DFT of HALF points in the order of `place`. */
static void transform(Complex *x) {
  int done = 1;
  for (int stage = 0; stage < STAGES; stage++) {
    int radix = radices[stage], length = done * radix, step = FRAME / length;
    for (int start = 0; start < HALF; start += length) {
      for (int k = 0; k < done; k++) {
        Complex *group = x + start + k;
        for (int j = 1; j < radix && k > 0; j++) group[j * done] = twisted(group[j * done], j * k * step);
        if (radix == 5) radix5(group, done);
        else if (radix == 4) radix4(group, done);
        else radix2(group, done);
      }
    }
    done = length;
  }
}

/* Power of bins 0..HALF of the real signal, whose even samples are the real parts and odd ones the imaginary. */
static void power(const Complex *x, Lanes *out) {
  Lanes dc = x[0].re + x[0].im, nyquist = x[0].re - x[0].im;
  out[0] = dc * dc;
  out[HALF] = nyquist * nyquist;
  for (int k = 1; k < HALF; k++) {
    Complex a = x[k], b = x[HALF - k];
    Lanes er = (a.re + b.re) * 0.5f, ei = (a.im - b.im) * 0.5f;
    Complex odd = twisted((Complex){(a.im + b.im) * 0.5f, (b.re - a.re) * 0.5f}, k);
    Lanes re = er + odd.re, im = ei + odd.im;
    out[k] = re * re + im * im;
  }
}

/* Buffer for the caller's samples (16 kHz, -1..1), at most mp_capacity. */
EXPORT(mp_input) float *mp_input(void) { return input; }

EXPORT(mp_capacity) int mp_capacity(void) { return MAX_SAMPLES; }

EXPORT(mp_output) const float *mp_output(void) { return output; }

/*
 * Mel powers of the first `samples` of the input; frame f has the 400 samples from 160 f on. Returns the number of
 * frames at mp_output, each of 64 values.
 */
EXPORT(mp_compute) int mp_compute(int samples) {
  if (samples < FRAME) return 0;
  if (samples > MAX_SAMPLES) return -1;
  if (!ready) prepare();
  int frames = 1 + (samples - FRAME) / SHIFT;
  Complex points[HALF];
  Lanes spectrum[BINS];
  for (int first = 0; first < frames; first += 4) {
    int count = frames - first < 4 ? frames - first : 4;
    load_frames(first, count, points);
    transform(points);
    power(points, spectrum);
    for (int band = 0; band < BANDS; band++) {
      Lanes energy = {0, 0, 0, 0};
      const float *weight = band_weight[band];
      const Lanes *bins = spectrum + band_first[band];
      for (int i = 0; i < band_count[band]; i++) energy += bins[i] * weight[i];
      for (int lane = 0; lane < count; lane++) output[(first + lane) * BANDS + band] = energy[lane];
    }
  }
  return frames;
}
