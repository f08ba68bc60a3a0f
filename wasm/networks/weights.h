/* Reads the sections of a file of packed weights one after another. Licence: MIT, as the rest of rollcall. */
#ifndef ROLLCALL_WEIGHTS_H
#define ROLLCALL_WEIGHTS_H

#include <stdint.h>

/* The position of the next section; all sections have multiples of 16 bytes. */
typedef const char *Reader;

static inline const void *take_bytes(Reader *reader, int bytes) {
  const char *section = *reader;
  *reader += bytes;
  return section;
}

static inline const int16_t *take_integers(Reader *reader, int count) {
  return take_bytes(reader, count * (int)sizeof(int16_t));
}

static inline const float *take_floats(Reader *reader, int count) {
  return take_bytes(reader, count * (int)sizeof(float));
}

#endif
