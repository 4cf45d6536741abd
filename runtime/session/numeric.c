/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cellgate/types.h"
#include "runtime/session/numeric.h"

double cg_numeric_tolerance(int32_t numeric)
{
    static const double by_class[] = { [CELLGATE_NUMERIC_F32] = 1e-5,
                                       [CELLGATE_NUMERIC_TF32] = 1e-2,
                                       [CELLGATE_NUMERIC_F16] = 1e-2,
                                       [CELLGATE_NUMERIC_BF16] = 5e-2,
                                       [CELLGATE_NUMERIC_INT8] = 0.1 };

    return numeric >= 0 && numeric <= CELLGATE_NUMERIC_INT8
               ? by_class[numeric]
               : by_class[CELLGATE_NUMERIC_F32];
}
