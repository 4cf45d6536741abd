/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h: compiled programs on disk, from process to process.
 *
 * A file a program, named by a digest of its key: everything that the binary
 * depends on. A file is written under another name and renamed, checked whole
 * when it is read, and ignored and removed when anything about it is wrong. The
 * folder belongs to this user alone, as what lies in it is executed. The files
 * that were not used for longest go when there is too much; files of other
 * names are left alone.
 */
#ifndef CELLGATE_OPENCL_CACHE_H
#define CELLGATE_OPENCL_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ocl_cache {
    int folder;     /* -1: nothing is kept */
    uint64_t limit; /* bytes of all files */
};

/*
 * Opens the folder, and makes it. "" is cellgate/opencl in the user's folder of
 * caches; "none" keeps nothing. On failure nothing is kept, and *why says so.
 */
void ocl_cache_init(struct ocl_cache *cache, const char *folder, uint64_t limit,
                    char *why, size_t why_size);
void ocl_cache_finish(struct ocl_cache *cache);

/*
 * The binary that was put under `key` (`key_size` bytes of anything), to be
 * freed with free(); NULL if there is none.
 */
void *ocl_cache_get(const struct ocl_cache *cache, const char *key,
                    size_t key_size, size_t *size);

/* Keeps a copy; fails silently, as nothing but time depends on it. */
void ocl_cache_put(const struct ocl_cache *cache, const char *key,
                   size_t key_size, const void *binary, size_t size);

/* Forgets what is kept under `key`: the driver refused it. */
void ocl_cache_drop(const struct ocl_cache *cache, const char *key,
                    size_t key_size);

#endif /* CELLGATE_OPENCL_CACHE_H */
