/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verdicts kept between processes, so that a short run doesn't pay for probes
 * of plugins that it won't use: one JSON file a plugin file, in
 * $XDG_CACHE_HOME/cellgate (~/.cache/cellgate).
 *
 * A kept verdict counts as long as the plugin's file (device, inode, size,
 * times), this build of Cellgate, and what the verdict depends on are the
 * same: the files and variables that the plugin names (cellgate_plugin.watched)
 * and, for every plugin, the dynamic linker's cache, LD_LIBRARY_PATH and
 * LD_PRELOAD. A verdict other than "admitted, with devices" is also probed
 * again after ten minutes: what was missing may be there by then, and what
 * timed out may have met a busy machine.
 *
 * The cache is a convenience: whatever is wrong with it is no error. A folder
 * or file of another user, or that others may write to, is not trusted and not
 * used. A setuid program uses none.
 */
#ifndef CELLGATE_RUNTIME_PLUGIN_VERDICT_CACHE_H
#define CELLGATE_RUNTIME_PLUGIN_VERDICT_CACHE_H

#include "runtime/plugin/log.h"
#include "runtime/plugin/verdict.h"

/* How long a verdict without devices is kept, seconds. */
#define CG_VERDICT_SHORT_LIFE 600

typedef struct cg_verdict_cache cg_verdict_cache;

/* What a file was when it was looked up: whose verdict is going to be kept. */
typedef struct cg_file_identity {
    char text[160]; /* "" for a file that isn't there */
} cg_file_identity;

/*
 * Opens the user's cache, making its folder if needed. NULL when there is
 * none to be used (the reason goes to `log`, as a debug line): the functions
 * below take NULL and do nothing.
 */
cg_verdict_cache *cg_verdict_cache_open(const cg_log *log);
void cg_verdict_cache_close(cg_verdict_cache *cache);

/*
 * The kept verdict on a file, the caller's to destroy, or NULL. `identity` is
 * set in any case.
 */
cg_verdict *cg_verdict_cache_get(cg_verdict_cache *cache, const char *path,
                                 cg_file_identity *identity);
/*
 * Keeps a verdict on the file as `identity` says it was, unless the verdict is
 * INTERNAL (it says nothing of the plugin).
 */
void cg_verdict_cache_put(cg_verdict_cache *cache, const char *path,
                          const cg_file_identity *identity,
                          const cg_verdict *verdict);
/* Drops what is kept on a file: it turned out to be wrong. */
void cg_verdict_cache_drop(cg_verdict_cache *cache, const char *path);

#endif
