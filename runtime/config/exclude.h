/* SPDX-License-Identifier: Apache-2.0 */
/* The key `exclude` of a device: variants that are left out, as patterns of
   their names with blanks between them. */
#ifndef CELLGATE_RUNTIME_CONFIG_EXCLUDE_H
#define CELLGATE_RUNTIME_CONFIG_EXCLUDE_H

#include "runtime/config/settings.h"

/* Whether one of the patterns fits; `patterns` NULL: there are none. */
bool cg_exclude_fits(const char *patterns, const char *variant);

/*
 * Whether each pattern of the section fits one of the names that its plugin
 * says it gives, which may end in '*'; none at all: that cannot be known.
 * BAD_CONFIG names the line and what there is.
 */
cellgate_status cg_exclude_check(const cg_config *config,
                                 const cg_device_section *section,
                                 char *const *variants, size_t count,
                                 cellgate_error *error);

#endif
