/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "cellgate/cellgate.h"
#include "tests/fuzz/target.h"

void fuzz_check_error(cellgate_status status, const cellgate_error *error)
{
    if (status == CELLGATE_OK)
        return;
    FUZZ_REQUIRE(cellgate_status_text(status) != NULL);
    FUZZ_REQUIRE(status != CELLGATE_NOT_FOUND && status != CELLGATE_END);
    FUZZ_REQUIRE(status != CELLGATE_INVALID && status != CELLGATE_NO_MEMORY);
    FUZZ_REQUIRE(error->status == (int32_t)status);
    FUZZ_REQUIRE(memchr(error->text, '\0', sizeof error->text) != NULL);
    FUZZ_REQUIRE(error->text[0] != '\0');
    FUZZ_REQUIRE(strchr(error->text, '\n') == NULL);
}
