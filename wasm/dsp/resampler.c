/*
 * Rational polyphase resampler to 16 kHz.
 *
 * Output n is at input position n * M / L (L/M = 16000/rate in lowest terms), both counted from the start of the
 * recording. Each output is one dot product of `taps` input samples with the windowed-sinc row of its phase, summed in
 * an order that depends on n alone. Its bits therefore do not depend on the start of a shard or on the blocks of the
 * input.
 *
 * Filter: sinc at 0.96 of the lower Nyquist frequency, 32 zero crossings a side, Kaiser window with beta 10, each row
 * normalised to a sum of one, so that a constant input gives exactly that constant.
 */
#include <math.h>
#include <string.h>

#include "dsp.h"

#define OUTPUT_RATE 16000
#define ZEROS 32
#define ROLL_OFF 0.96
#define KAISER_BETA 10.0
/*
 * Ratios with a larger table (12345 Hz has 3200 phases, 44101 Hz 16000) interpolate linearly between the rows of a
 * table with INTERPOLATED_ROWS steps per zero crossing, which takes about 0.3 MB at any rate.
 */
#define MAX_TABLE_FLOATS 100000
#define INTERPOLATED_ROWS 1024
#define MIN_RATE 1000
#define MAX_RATE 1000000

typedef struct Resampler {
  int64_t up, down;        /* L, M */
  int half, taps;          /* taps = 2 * half, a multiple of 4 */
  int rows;                /* rows of the table; one more follows when interpolating */
  int interpolate;
  float *table;            /* [rows (+ 1), taps] */
  int64_t next_output;     /* absolute index of the next output */
  int64_t history_start;   /* absolute index of history[0] */
  int64_t end;             /* absolute index one past the last input */
  float *history;
  int history_capacity;
  float *output;
  int output_capacity;
} Resampler;

static int64_t greatest_common_divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static int64_t floor_divide(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return quotient * b > a ? quotient - 1 : quotient;
}

/* Modified Bessel function of the first kind, order 0, by its power series. */
static double bessel_i0(double x) {
  double term = 1, sum = 1, quarter = x * x / 4;
  for (int k = 1; term > sum * 1e-17; k++) {
    term *= quarter / ((double)k * k);
    sum += term;
  }
  return sum;
}

static double cutoff_of(int rate) { return (rate > OUTPUT_RATE ? (double)OUTPUT_RATE / rate : 1.0) * ROLL_OFF; }

/* Input samples that an output depends on, on either side; even, so that both sides are a multiple of 4. */
static int half_width(int rate) {
  if (rate == OUTPUT_RATE) return 0;
  int half = (int)ceil(ZEROS / cutoff_of(rate));
  return half + (half & 1);
}

/* Fills a row: the filter for an output that is `offset` (0..1) input samples after tap number half - 1 of the row. */
static void fill_row(float *row, int taps, double cutoff, double offset) {
  double extent = ZEROS / cutoff, norm = bessel_i0(KAISER_BETA), sum = 0;
  int half = taps / 2;
  for (int pass = 0; pass < 2; pass++) {
    for (int k = 0; k < taps; k++) {
      double t = (k - (half - 1)) - offset, ratio = t / extent, value = 0;
      if (fabs(ratio) < 1) {
        double angle = PI * cutoff * t;
        value = (fabs(angle) < 1e-9 ? 1 : sin(angle) / angle) * bessel_i0(KAISER_BETA * sqrt(1 - ratio * ratio)) / norm;
      }
      if (pass == 0)
        sum += value;
      else
        row[k] = (float)(value / sum);
    }
  }
}

EXPORT(rs_context) int rs_context(int rate) { return half_width(rate); }

EXPORT(rs_close) void rs_close(Resampler *r) {
  if (!r) return;
  free(r->table);
  free(r->history);
  free(r->output);
  free(r);
}

/*
 * rate: input rate in Hz. first_input, first_output: absolute indices (exact up to 2^53) of the first input sample and
 * of the first output. Inputs before first_input count as zero. Returns 0 for a rate out of bounds or without memory.
 */
EXPORT(rs_open) Resampler *rs_open(int rate, double first_input, double first_output) {
  if (rate < MIN_RATE || rate > MAX_RATE) return NULL;
  Resampler *r = calloc(1, sizeof(Resampler));
  if (!r) return NULL;
  int64_t divisor = greatest_common_divisor(rate, OUTPUT_RATE);
  r->up = OUTPUT_RATE / divisor;
  r->down = rate / divisor;
  r->half = half_width(rate);
  r->taps = 2 * r->half;
  r->next_output = (int64_t)first_output;
  r->end = (int64_t)first_input;
  if (r->half) {
    double cutoff = cutoff_of(rate);
    r->interpolate = r->up * r->taps > MAX_TABLE_FLOATS;
    r->rows = r->interpolate ? (int)ceil(INTERPOLATED_ROWS * cutoff) : (int)r->up;
    int filled = r->rows + r->interpolate;
    r->table = malloc((size_t)filled * r->taps * sizeof(float));
    if (!r->table) {
      rs_close(r);
      return NULL;
    }
    for (int row = 0; row < filled; row++) {
      fill_row(r->table + (size_t)row * r->taps, r->taps, cutoff, (double)row / r->rows);
    }
  }
  /* The first output may depend on samples before the first input, which are zeros in the history. */
  int64_t reach = floor_divide(r->next_output * r->down, r->up) - r->half + (r->half > 0);
  r->history_start = reach < r->end ? reach : r->end;
  /* Refuses outputs that are farther before the first input than the filter reaches. */
  if (r->end - r->history_start > 4 * (int64_t)r->taps + 4096) {
    rs_close(r);
    return NULL;
  }
  r->history_capacity = (int)(r->end - r->history_start);
  r->history = calloc((size_t)r->history_capacity + 1, sizeof(float));
  if (!r->history) {
    rs_close(r);
    return NULL;
  }
  return r;
}

static int reserve(float **buffer, int *capacity, int64_t needed) {
  if (needed <= *capacity) return 1;
  if (needed > (1 << 24)) return 0;
  float *grown = realloc(*buffer, (size_t)needed * sizeof(float));
  if (!grown) return 0;
  *buffer = grown;
  *capacity = (int)needed;
  return 1;
}

/* Buffer for the next `count` samples, or 0 without memory. */
EXPORT(rs_input) float *rs_input(Resampler *r, int count) {
  int64_t held = r->end - r->history_start;
  if (count < 0 || !reserve(&r->history, &r->history_capacity, held + count)) return NULL;
  return r->history + held;
}

static float sum_lanes(v128_t v) {
  return (wasm_f32x4_extract_lane(v, 0) + wasm_f32x4_extract_lane(v, 1)) +
         (wasm_f32x4_extract_lane(v, 2) + wasm_f32x4_extract_lane(v, 3));
}

static float dot(const float *x, const float *row, int taps) {
  v128_t even = wasm_f32x4_splat(0), odd = even;
  int k = 0;
  for (; k + 8 <= taps; k += 8) {
    even = wasm_f32x4_add(even, wasm_f32x4_mul(wasm_v128_load(x + k), wasm_v128_load(row + k)));
    odd = wasm_f32x4_add(odd, wasm_f32x4_mul(wasm_v128_load(x + k + 4), wasm_v128_load(row + k + 4)));
  }
  if (k < taps) even = wasm_f32x4_add(even, wasm_f32x4_mul(wasm_v128_load(x + k), wasm_v128_load(row + k)));
  return sum_lanes(wasm_f32x4_add(even, odd));
}

/* Dot products with the same row that are computed at once, so that the row is loaded once for all of them. */
#define WAYS 4

/* out[m * apart] = dot(x + m * shift, row), for m below WAYS; each summed in the order of `dot`, with the same bits. */
static void dots(const float *x, int64_t shift, const float *row, int taps, float *out, int64_t apart) {
  v128_t even[WAYS], odd[WAYS];
  for (int m = 0; m < WAYS; m++) even[m] = odd[m] = wasm_f32x4_splat(0);
  int k = 0;
  for (; k + 8 <= taps; k += 8) {
    v128_t left = wasm_v128_load(row + k), right = wasm_v128_load(row + k + 4);
    for (int m = 0; m < WAYS; m++) {
      even[m] = wasm_f32x4_add(even[m], wasm_f32x4_mul(wasm_v128_load(x + m * shift + k), left));
      odd[m] = wasm_f32x4_add(odd[m], wasm_f32x4_mul(wasm_v128_load(x + m * shift + k + 4), right));
    }
  }
  if (k < taps) {
    v128_t left = wasm_v128_load(row + k);
    for (int m = 0; m < WAYS; m++) {
      even[m] = wasm_f32x4_add(even[m], wasm_f32x4_mul(wasm_v128_load(x + m * shift + k), left));
    }
  }
  for (int m = 0; m < WAYS; m++) out[m * apart] = sum_lanes(wasm_f32x4_add(even[m], odd[m]));
}

/* The output at position + phase / up; x is the first input that it depends on. */
static float one_output(const Resampler *r, const float *x, int64_t phase) {
  if (!r->interpolate) return dot(x, r->table + phase * r->taps, r->taps);
  int64_t scaled = phase * r->rows, row = scaled / r->up;
  float fraction = (float)((double)(scaled - row * r->up) / (double)r->up);
  const float *lower = r->table + row * r->taps;
  float a = dot(x, lower, r->taps), b = dot(x, lower + r->taps, r->taps);
  return a + (b - a) * fraction;
}

/* Computes `count` outputs from r->next_output on. Outputs `up` apart have the same row, and inputs `down` apart. */
static void filter(const Resampler *r, int64_t count) {
  int64_t whole = r->down / r->up, part = r->down % r->up;
  int64_t together = r->interpolate ? 0 : count / (WAYS * r->up) * (WAYS * r->up);
  int64_t position = floor_divide(r->next_output * r->down, r->up);
  int64_t phase = r->next_output * r->down - position * r->up;
  const float *x = r->history + (position - r->half + 1 - r->history_start);
  for (int64_t i = 0; i < count;) {
    if (i < together)
      dots(x, r->down, r->table + phase * r->taps, r->taps, r->output + i, r->up);
    else
      r->output[i] = one_output(r, x, phase);
    x += whole;
    phase += part;
    if (phase >= r->up) {
      phase -= r->up;
      x++;
    }
    i++;
    /* Skips the outputs that `dots` has made. */
    if (i < together && i % r->up == 0) {
      i += (WAYS - 1) * r->up;
      x += (WAYS - 1) * r->down;
    }
  }
}

/*
 * Produces the outputs below `limit` whose inputs are all before `available`. Returns their count, -1 without memory.
 */
static int produce(Resampler *r, int64_t available, int64_t limit) {
  int64_t first = r->next_output;
  int64_t most = (available - r->half) * r->up;
  /* position(n) + half < available, and for the identity (half 0) n < available. */
  int64_t stop = most <= 0 ? first : floor_divide(most - 1, r->down) + 1;
  if (stop > limit) stop = limit;
  if (stop < first) stop = first;
  int count = (int)(stop - first);
  if (!reserve(&r->output, &r->output_capacity, count)) return -1;
  if (r->half == 0) {
    memcpy(r->output, r->history + (first - r->history_start), (size_t)count * sizeof(float));
  } else {
    filter(r, count);
  }
  r->next_output = stop;
  /* Drops inputs that no later output depends on. */
  int64_t keep = floor_divide(r->next_output * r->down, r->up) - r->half + (r->half > 0);
  if (keep > r->end) keep = r->end;
  if (keep > r->history_start) {
    memmove(r->history, r->history + (keep - r->history_start), (size_t)(r->end - keep) * sizeof(float));
    r->history_start = keep;
  }
  return count;
}

/* Adds `count` samples at rs_input. Returns the number of outputs at rs_output, -1 without memory. */
EXPORT(rs_push) int rs_push(Resampler *r, int count) {
  r->end += count;
  return produce(r, r->end, INT64_MAX);
}

/* Produces the outputs before the end of the input; later samples count as zero. No sample may be added after that. */
EXPORT(rs_flush) int rs_flush(Resampler *r) {
  int64_t end = r->end;
  int64_t limit = end <= 0 ? r->next_output : floor_divide(end * r->up - 1, r->down) + 1;
  int padding = r->half + 1;
  float *zeros = rs_input(r, padding);
  if (!zeros) return -1;
  memset(zeros, 0, (size_t)padding * sizeof(float));
  r->end += padding;
  return produce(r, r->end, limit);
}

EXPORT(rs_output) const float *rs_output(const Resampler *r) { return r->output; }
