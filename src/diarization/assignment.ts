/**
 * Optimal assignment of rows to columns, each used at most once, with the largest total score (Jonker & Volgenant's shortest
 * augmenting paths, O(rows² · columns)). With fewer columns than rows, the rows that lose get −1.
 *
 * @param scores [rows, columns]
 * @throws where scores are not finite: there is no way to go on from such a row
 * @returns [rows] column of each row, or −1
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

/** Smallest total cost; `rows` ≤ `columns`. Row 0 and column 0 of the working arrays are the root of the augmenting path. */
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
