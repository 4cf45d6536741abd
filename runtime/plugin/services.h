/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host services that are the same in a probe and in an application: members
 * of cellgate_host, whose comments in plugin.h say what they do.
 */
#ifndef CELLGATE_RUNTIME_PLUGIN_SERVICES_H
#define CELLGATE_RUNTIME_PLUGIN_SERVICES_H

#include "cellgate/plugin.h"

void *cg_service_allocate(void *context, size_t alignment, size_t size);
void cg_service_release(void *context, void *memory);
uint64_t cg_service_clock(void *context);

/* The default of a declared key, or NULL. */
const char *cg_service_default(const cellgate_key *keys, size_t key_count,
                               const char *key);

#endif
