from __future__ import annotations

import numpy as np

from benchmarks._rows import Rows
from benchmarks.lottery import fill


def test_the_rows_are_of_all_seeds_and_count_the_better_ones():
    results = np.array([[[0.5, 0.875, 0.75]], [[0.5, 0.75, 0.75]], [[0.5, 0.625, 0.75]]])
    rows = Rows("lottery")
    fill(rows, results)
    assert {row.table for row in rows} == {"Test accuracy of 3 seeds, by round"}
    assert {row.column: row.cell for row in rows} == {
        "sparsity": "50 %",
        "winning": "75 % (68.8 to 81.2)",
        "random": "75 %",
        "difference": "0 % (-6.25 to 6.25)",
        "winning better": "1.50 of 3",
    }
