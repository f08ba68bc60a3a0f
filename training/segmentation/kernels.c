/*
 * Training kernels in float32 for one thread: the recurrence of a GRU of 64 units over [batch][time][...] and a depthwise convolution of 15
 * frames over 128 channels, forward and backward. Vectors are as wide as the processor's registers.
 */
#include <math.h>
#include <string.h>

#ifdef __AVX512F__
#define WIDTH 16
#else
#define WIDTH 8
#endif

typedef float vec __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));

static inline vec load(const float *from) { return *(const vec *)from; }

static inline void store(float *to, vec value) { *(vec *)to = value; }

#define UNITS 64
#define GATES 192

/*
 * out[row][0..N) = sum over k of in[row][k] * weights[k][0..N), in tiles of 4 rows by 2 vectors. K and N are constants once inlined. The sums have names
 * of their own: the compiler keeps an array of them in memory, which costs a factor of five.
 */
static inline __attribute__((always_inline)) void multiply(const float *in, const float *weights, float *out, int rows, int K, int N) {
    for (int column = 0; column < N; column += 2 * WIDTH) {
        int row = 0;
        for (; row + 4 <= rows; row += 4) {
            vec a0 = {0}, a1 = {0}, b0 = {0}, b1 = {0}, c0 = {0}, c1 = {0}, d0 = {0}, d1 = {0};
            const float *x = in + (long)row * K, *w = weights + column;
            for (int k = 0; k < K; k++, w += N) {
                vec w0 = load(w), w1 = load(w + WIDTH);
                float a = x[k], b = x[K + k], c = x[2 * K + k], d = x[3 * K + k];
                a0 += a * w0, a1 += a * w1;
                b0 += b * w0, b1 += b * w1;
                c0 += c * w0, c1 += c * w1;
                d0 += d * w0, d1 += d * w1;
            }
            float *o = out + (long)row * N + column;
            store(o, a0), store(o + WIDTH, a1);
            store(o + N, b0), store(o + N + WIDTH, b1);
            store(o + 2 * N, c0), store(o + 2 * N + WIDTH, c1);
            store(o + 3 * N, d0), store(o + 3 * N + WIDTH, d1);
        }
        for (; row < rows; row++) {
            vec a0 = {0}, a1 = {0};
            const float *x = in + (long)row * K, *w = weights + column;
            for (int k = 0; k < K; k++, w += N) a0 += x[k] * load(w), a1 += x[k] * load(w + WIDTH);
            store(out + (long)row * N + column, a0), store(out + (long)row * N + column + WIDTH, a1);
        }
    }
}

/*
 * inputs [batch][time][192]: the input half of the gates r, z, n; weights [64][192] (transposed), bias [192] of the recurrent half.
 * hidden [batch][time][64]; saved [batch][time][256]: r, z, n and the recurrent half of n; scratch batch * 256 floats.
 */
void gru_forward(const float *inputs, const float *weights, const float *bias, float *hidden, float *saved, float *scratch, int batch,
                 int time, int reverse) {
    float *state = scratch, *gates = scratch + (long)batch * UNITS;
    memset(state, 0, sizeof(float) * batch * UNITS);
    for (int step = 0; step < time; step++) {
        int t = reverse ? time - 1 - step : step;
        multiply(state, weights, gates, batch, UNITS, GATES);
        for (int b = 0; b < batch; b++) {
            long at = (long)b * time + t;
            const float *x = inputs + at * GATES, *g = gates + (long)b * GATES;
            float *s = saved + at * 4 * UNITS, *out = hidden + at * UNITS, *h = state + (long)b * UNITS;
            for (int i = 0; i < 2 * UNITS; i++) s[i] = 1.f / (1.f + expf(-(x[i] + g[i] + bias[i])));
            for (int i = 0; i < UNITS; i++) {
                float recurrent = g[2 * UNITS + i] + bias[2 * UNITS + i];
                float e = x[2 * UNITS + i] + s[i] * recurrent;
                e = e > 20 ? 20 : e < -20 ? -20 : e;
                float n = 1.f - 2.f / (expf(2 * e) + 1.f);
                s[3 * UNITS + i] = recurrent;
                s[2 * UNITS + i] = n;
                out[i] = h[i] = (1 - s[UNITS + i]) * n + s[UNITS + i] * h[i];
            }
        }
    }
}

/* d_hidden [batch][time][64], weights [192][64] -> d_inputs and d_gates [batch][time][192]; scratch batch * 320 floats. */
void gru_backward(const float *d_hidden, const float *weights, const float *hidden, const float *saved, float *d_inputs, float *d_gates,
                  float *scratch, int batch, int time, int reverse) {
    float *carried = scratch, *gates = carried + (long)batch * UNITS, *product = gates + (long)batch * GATES;
    memset(carried, 0, sizeof(float) * batch * UNITS);
    for (int step = time - 1; step >= 0; step--) {
        int t = reverse ? time - 1 - step : step, before = reverse ? t + 1 : t - 1;
        for (int b = 0; b < batch; b++) {
            long at = (long)b * time + t;
            const float *s = saved + at * 4 * UNITS, *past = hidden + ((long)b * time + before) * UNITS, *dh = d_hidden + at * UNITS;
            float *dx = d_inputs + at * GATES, *dg = d_gates + at * GATES, *c = carried + (long)b * UNITS, *g = gates + (long)b * GATES;
            for (int i = 0; i < UNITS; i++) {
                float d = c[i] + dh[i], r = s[i], z = s[UNITS + i], n = s[2 * UNITS + i], recurrent = s[3 * UNITS + i];
                float previous = step > 0 ? past[i] : 0.f;
                float dn = d * (1 - z) * (1 - n * n), dz = d * (previous - n) * z * (1 - z), dr = dn * recurrent * r * (1 - r);
                c[i] = d * z;
                dx[i] = dr;
                dx[UNITS + i] = dz;
                dx[2 * UNITS + i] = dn;
                dg[i] = g[i] = dr;
                dg[UNITS + i] = g[UNITS + i] = dz;
                dg[2 * UNITS + i] = g[2 * UNITS + i] = dn * r;
            }
        }
        multiply(gates, weights, product, batch, GATES, UNITS);
        for (long i = 0; i < (long)batch * UNITS; i++) carried[i] += product[i];
    }
}

#define CHANNELS 128
#define TAPS 15
#define HALF 7

/* out[b][t][c] = bias[c] + sum over k of weights[k][c] * x[b][t + k - 7][c]; flip reverses the taps (the gradient with respect to x). */
void depthwise_forward(const float *x, const float *weights, const float *bias, float *out, int batch, int time, int flip) {
    for (int b = 0; b < batch; b++)
        for (int t = 0; t < time; t++) {
            int first = t < HALF ? HALF - t : 0, last = t + HALF >= time ? time - t + HALF : TAPS;
            for (int channel = 0; channel < CHANNELS; channel += 4 * WIDTH) {
                vec sum0 = {0}, sum1 = {0}, sum2 = {0}, sum3 = {0};
                if (bias) {
                    const float *from = bias + channel;
                    sum0 = load(from), sum1 = load(from + WIDTH), sum2 = load(from + 2 * WIDTH), sum3 = load(from + 3 * WIDTH);
                }
                for (int k = first; k < last; k++) {
                    const float *in = x + ((long)b * time + t + k - HALF) * CHANNELS + channel;
                    const float *w = weights + (flip ? TAPS - 1 - k : k) * CHANNELS + channel;
                    sum0 += load(in) * load(w), sum1 += load(in + WIDTH) * load(w + WIDTH);
                    sum2 += load(in + 2 * WIDTH) * load(w + 2 * WIDTH), sum3 += load(in + 3 * WIDTH) * load(w + 3 * WIDTH);
                }
                float *o = out + ((long)b * time + t) * CHANNELS + channel;
                store(o, sum0), store(o + WIDTH, sum1), store(o + 2 * WIDTH, sum2), store(o + 3 * WIDTH, sum3);
            }
        }
}

/* Gradients of the weights [15][128] and the bias [128]. */
void depthwise_weights(const float *x, const float *d_out, float *d_weights, float *d_bias, int batch, int time) {
    for (int i = 0; i < CHANNELS / WIDTH; i++) {
        vec sum[TAPS], total = {0};
        for (int k = 0; k < TAPS; k++) sum[k] = (vec){0};
        for (int b = 0; b < batch; b++)
            for (int t = 0; t < time; t++) {
                vec d = load(d_out + ((long)b * time + t) * CHANNELS + WIDTH * i);
                const float *in = x + ((long)b * time + t - HALF) * CHANNELS + WIDTH * i;
                total += d;
                if (t >= HALF && t + HALF < time) {
#pragma GCC unroll 15
                    for (int k = 0; k < TAPS; k++) sum[k] += d * load(in + k * CHANNELS);
                } else
                    for (int k = 0; k < TAPS; k++)
                        if (t + k - HALF >= 0 && t + k - HALF < time) sum[k] += d * load(in + k * CHANNELS);
            }
        for (int k = 0; k < TAPS; k++) store(d_weights + k * CHANNELS + WIDTH * i, sum[k]);
        store(d_bias + WIDTH * i, total);
    }
}

/*
 * Diffuse reverberation of mel power, in place: tail[t] = decay * tail[t-1] + (1 - decay) * power[t-1] per band, power[t] += gain[band] *
 * tail[t] * flutter[t]. power and flutter [frames][bands], decay and gain [bands].
 */
void reverberate(float *power, const float *flutter, const float *decay, const float *gain, int frames, int bands) {
    float tail[256] = {0};
    for (int t = 0; t < frames; t++) {
        float *p = power + (long)t * bands;
        const float *f = flutter + (long)t * bands;
        for (int i = 0; i < bands; i++) {
            float now = p[i];
            p[i] = now + gain[i] * tail[i] * f[i];
            tail[i] = decay[i] * tail[i] + (1 - decay[i]) * now;
        }
    }
}
