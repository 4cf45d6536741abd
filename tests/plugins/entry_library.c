/* SPDX-License-Identifier: Apache-2.0 */
/* A library, not a plugin, that exports the entry. */
#include "cellgate/plugin.h"

const cellgate_plugin *cellgate_plugin_entry(uint32_t lowest, uint32_t highest)
{
    (void)lowest;
    (void)highest;
    return NULL;
}
