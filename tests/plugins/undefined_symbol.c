/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that calls what no library has. */
#include "cellgate/plugin.h"

extern const cellgate_plugin *cellgate_test_nowhere(void);

const cellgate_plugin *cellgate_plugin_entry(uint32_t lowest, uint32_t highest)
{
    (void)lowest;
    (void)highest;
    return cellgate_test_nowhere();
}
