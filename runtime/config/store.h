/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts checked values into the structs that other rooms read, where the rows of
 * the key table say.
 */
#ifndef CELLGATE_RUNTIME_CONFIG_STORE_H
#define CELLGATE_RUNTIME_CONFIG_STORE_H

#include "runtime/config/keys.h"

/*
 * `owner` is the struct that the key's section fills: a cg_config a
 * cg_device_section or a cg_pin_section. What the value replaces is freed.
 * NO_MEMORY; BAD_CONFIG: the text is no list of folders, and `problem` says
 * what was expected.
 */
cellgate_status cg_store_value(void *owner, const cg_key *key,
                               const cg_value *value, char *problem,
                               size_t problem_size);
/* Every key of the section, at its default. NO_MEMORY. */
cellgate_status cg_store_defaults(const cg_section *section, void *owner);
/* "16", "1-8", "64-" or "any"; false: it is none of these. */
bool cg_range_parse(const char *text, cg_range *range);
void cg_paths_free(char **paths, size_t count);

#endif
