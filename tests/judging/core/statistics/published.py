"""Published examples used by several tests."""

import numpy as np

NO = np.nan
# Krippendorff, Computing Krippendorff's Alpha-Reliability, 2011: units × raters.
KRIPPENDORFF_2011 = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NO, NO, NO],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NO, 3],
        [NO, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NO],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NO],
    ]
).T
