/** Vectors are rows of a flat array; `offset` is the index of a row's first value. */

type Rows = Float32Array | Float64Array;

/** Dot product of two rows. Four sums, so that additions do not wait for each other. */
export function dot(a: Rows, aOffset: number, b: Rows, bOffset: number, dimension: number): number {
  let sum0 = 0;
  let sum1 = 0;
  let sum2 = 0;
  let sum3 = 0;
  let index = 0;
  for (; index + 3 < dimension; index += 4) {
    sum0 += a[aOffset + index] * b[bOffset + index];
    sum1 += a[aOffset + index + 1] * b[bOffset + index + 1];
    sum2 += a[aOffset + index + 2] * b[bOffset + index + 2];
    sum3 += a[aOffset + index + 3] * b[bOffset + index + 3];
  }
  for (; index < dimension; index++) sum0 += a[aOffset + index] * b[bOffset + index];
  return sum0 + sum1 + (sum2 + sum3);
}

/** Scales the row to unit length in place; a row of zeros stays as it is. */
export function normalise(values: Float32Array, offset: number, dimension: number): void {
  const length = Math.sqrt(dot(values, offset, values, offset, dimension));
  if (length === 0) return;
  for (let index = 0; index < dimension; index++) values[offset + index] /= length;
}

/** Index of the largest of `count` values from `offset`; the first of equal ones, as in numpy and torch. */
export function argmax(values: ArrayLike<number>, offset: number, count: number): number {
  let best = 0;
  for (let index = 1; index < count; index++) {
    if (values[offset + index] > values[offset + best]) best = index;
  }
  return best;
}

/** Rounds halves to the even neighbour, as numpy's `rint` does. */
export function rint(value: number): number {
  const floor = Math.floor(value);
  const fraction = value - floor;
  if (fraction !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}

/** At most three decimals, the precision of the times in the output. */
export function toMilliseconds(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}

/**
 * Assignment of rows to columns, each used at most once, with the largest total score (shortest augmenting paths of
 * Jonker & Volgenant, O(rows² · columns)). With fewer columns than rows, rows without a column get −1.
 *
 * @param scores [rows, columns]
 * @returns [rows] column of each row, or −1
 * @throws if scores are not finite: the search could not continue from such a row
 */
export function assignOptimally(scores: ArrayLike<number>, rows: number, columns: number): Int32Array {
  if (rows <= columns) return solve((row, column) => -scores[row * columns + column], rows, columns);
  const byColumn = solve((column, row) => -scores[row * columns + column], columns, rows);
  const result = new Int32Array(rows).fill(-1);
  byColumn.forEach((row, column) => {
    result[row] = column;
  });
  return result;
}

/**
 * Assignment with the smallest total cost; `rows` ≤ `columns`. Row 0 and column 0 of the working arrays are the root of
 * the augmenting path.
 */
function solve(cost: (row: number, column: number) => number, rows: number, columns: number): Int32Array {
  const rowPotential = new Float64Array(rows + 1);
  const columnPotential = new Float64Array(columns + 1);
  const rowOf = new Int32Array(columns + 1);
  const previous = new Int32Array(columns + 1);
  for (let row = 1; row <= rows; row++) {
    const slack = new Float64Array(columns + 1).fill(Number.POSITIVE_INFINITY);
    const visited = new Uint8Array(columns + 1);
    rowOf[0] = row;
    let column = 0;
    do {
      visited[column] = 1;
      const from = rowOf[column];
      let smallest = Number.POSITIVE_INFINITY;
      let next = 0;
      for (let candidate = 1; candidate <= columns; candidate++) {
        if (visited[candidate]) continue;
        const reduced = cost(from - 1, candidate - 1) - rowPotential[from] - columnPotential[candidate];
        if (reduced < slack[candidate]) {
          slack[candidate] = reduced;
          previous[candidate] = column;
        }
        if (slack[candidate] < smallest) {
          smallest = slack[candidate];
          next = candidate;
        }
      }
      if (smallest === Number.POSITIVE_INFINITY) throw new Error('scores to be assigned must be finite');
      for (let other = 0; other <= columns; other++) {
        if (visited[other]) {
          rowPotential[rowOf[other]] += smallest;
          columnPotential[other] -= smallest;
        } else {
          slack[other] -= smallest;
        }
      }
      column = next;
    } while (rowOf[column] !== 0);
    do {
      const back = previous[column];
      rowOf[column] = rowOf[back];
      column = back;
    } while (column !== 0);
  }
  const result = new Int32Array(rows).fill(-1);
  for (let column = 1; column <= columns; column++) {
    if (rowOf[column] > 0) result[rowOf[column] - 1] = column - 1;
  }
  return result;
}
